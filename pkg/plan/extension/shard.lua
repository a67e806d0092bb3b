-- Runs on the way to a shard, after every other filter. A shard that does not own
-- the key answers 421, or 307, with x-wrong-shard: that becomes a redirect to what
-- was called, which the proxy follows itself. A redirect that means something else
-- is kept from it; routing.lua gives it back.
local mark, was, wrong = "x-portolan-routed", "x-portolan-answer", "x-wrong-shard"
-- redirect is the status that the proxy follows.
local redirect = "308"
local namespace = "portolan.shard"

-- target is the URL that was called, of a request that was routed.
local function target(headers)
  local called = headers:get(mark)
  called = called and called:match("@(.+)$")
  return called and (headers:get(":scheme") or "http") .. "://" .. called .. (headers:get(":path") or "/")
end

-- A proxy that shows a response nothing else of its request has metadata of each.
function envoy_on_request(handle)
  if handle.requestHeaders then return end
  local called = target(handle:headers())
  if called then handle:streamInfo():dynamicMetadata():set(namespace, "called", called) end
end

local function called_by(handle)
  if handle.requestHeaders then return target(handle:requestHeaders()) end
  local m = handle:streamInfo():dynamicMetadata():get(namespace)
  return m and m.called
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local status, not_mine = headers:get(":status"), headers:get(wrong)
  if status ~= redirect and not not_mine then return end
  local called = called_by(handle)
  if not called then return end
  if not_mine and (status == "421" or status == "307") then
    headers:replace(was, status .. " " .. (headers:get("location") or ""))
    headers:replace(":status", redirect)
    headers:replace("location", called)
  elseif status == redirect and headers:get("location") then
    headers:replace(was, status .. " " .. headers:get("location"))
    headers:remove("location")
  end
end
