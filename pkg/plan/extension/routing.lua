-- Routes a request to the shard that a lookup names. The policy is the filter
-- context of the virtual host; see the package's documentation for its fields.
local entries, count, head, tail = {}, 0, nil, nil

local function unlink(e)
  if e.prev then e.prev.next = e.next else head = e.next end
  if e.next then e.next.prev = e.prev else tail = e.prev end
  e.prev, e.next = nil, nil
end

local function push(e)
  e.next = head
  if head then head.prev = e else tail = e end
  head = e
end

local function remember(key, host, expires, most)
  local e = entries[key]
  if e then
    unlink(e)
  elseif count >= most then
    e = tail
    unlink(e)
    entries[e.key] = nil
  else
    e, count = {}, count + 1
  end
  e.key, e.host, e.expires = key, host, expires
  entries[key] = e
  push(e)
end

local function escape(s)
  return (s:gsub("[^%w%-%._~]", function(c) return string.format("%%%02X", c:byte()) end))
end

local function matches(policy, headers)
  local path = headers:get(":path") or "/"
  if policy.path_prefixes then
    local found = false
    for _, prefix in ipairs(policy.path_prefixes) do
      if path:sub(1, #prefix) == prefix then found = true end
    end
    if not found then return false end
  end
  for name, want in pairs(policy.headers or {}) do
    local got = headers:get(name)
    if not got or (want ~= "" and got ~= want) then return false end
  end
  return true
end

local function part(headers, kind, name)
  if kind == "header" then return headers:get(name) end
  local path, query = (headers:get(":path") or "/"):match("^([^?]*)%??(.*)$")
  if kind == "query" then
    for k, v in query:gmatch("([^&=]+)=([^&]*)") do
      if k == name then return v end
    end
    return nil
  end
  local i = 0
  for segment in path:gmatch("[^/]+") do
    if i == tonumber(name) then return segment end
    i = i + 1
  end
  return nil
end

local function keyOf(policy, headers)
  local complete = true
  local key = policy.key:gsub("{(%a+)%[([^%]]*)%]}", function(kind, name)
    local v = part(headers, kind, name)
    if not v or v == "" then complete = false; return "" end
    return v
  end)
  if complete then return key end
  return nil
end

local function fail(handle, policy)
  if policy.on_failure == "Deny" then
    handle:respond({[":status"] = "503", ["x-portolan-routing"] = "denied"}, "no shard is known for this request")
  elseif policy.default_host then
    handle:headers():replace(":authority", policy.default_host)
  end
end

function envoy_on_request(handle)
  local policy = handle:filterContext()
  local headers = handle:headers()
  if not policy or not policy.key or not matches(policy, headers) then return end
  local key = keyOf(policy, headers)
  if not key then return fail(handle, policy) end
  local now = tonumber(handle:timestamp())
  local cached = policy.policy .. "\n" .. key
  local e = entries[cached]
  if e and now < e.expires then
    unlink(e)
    push(e)
    headers:replace(":authority", e.host)
    return
  end
  local ok, answer, body = pcall(handle.httpCall, handle, policy.cluster,
    {[":method"] = "GET", [":path"] = policy.path .. escape(key), [":authority"] = policy.authority},
    nil, tonumber(policy.timeout_ms))
  local host = ok and answer and answer[":status"] == "200" and (answer["x-shard"] or body)
  if host and policy.shards then host = policy.shards[host] end
  if not host or host == "" then return fail(handle, policy) end
  remember(cached, host, now + tonumber(policy.ttl_ms), tonumber(policy.max_entries))
  handle:headers():replace(":authority", host)
end
