-- Routes a request to the shard that a lookup names. What to do is the filter
-- context of the virtual host: "policies", the first of which that matches counts,
-- "called", the host and port, and "id", which is another where one of these is. See
-- context.go for the fields.

-- mark is on a request that was sent to a shard: a token of the answer that it was
-- sent by, "@" and the host and port that were called. Where a request comes back with it,
-- the shard has said that it is the wrong one, and the answer is not used again.
local mark = "x-portolan-routed"
-- was is what a shard answered, where the answer had to be changed on its way.
local was = "x-portolan-answer"
local wrong = "x-wrong-shard"
-- redirect is the status of what shard.lua has changed.
local redirect = "308"
-- namespace of what is said of a request in its dynamic metadata.
local namespace = "portolan.routing"
-- longest key that is looked up.
local longest = 1024
-- After so many lookups in a row that fail, one at a time is tried.
local patience = 5
-- unused is how long, in ms, answers are kept of a policy that no request needs.
local unused = 600000
-- often is how long, in ms, hits are gathered before they are counted, and an
-- answer that is used counts as just used.
local often = 1000

local compiled, stores = {}, {}
-- complete is whether the proxy shows a response the headers of its request.
local complete = false

math.randomseed(os.time() + tonumber((tostring({}):match("0x(%x+)")), 16) % 2147483647)

local function token()
  return string.format("%08x%08x", math.random(0, 2147483647), math.random(0, 2147483647))
end

-- A store is the answers of one policy of one virtual host, the least recently used
-- last, and how its lookups fare. An answer is a list, which takes half of what a
-- table with names does: the collector goes over all of them again and again.
local KEY, SHARD, FRESH, DEAD, MARK, PREV, NEXT, ASKED, USED = 1, 2, 3, 4, 5, 6, 7, 8, 9

local function unlink(s, e)
  if e[PREV] then e[PREV][NEXT] = e[NEXT] else s.head = e[NEXT] end
  if e[NEXT] then e[NEXT][PREV] = e[PREV] else s.tail = e[PREV] end
  e[PREV], e[NEXT] = false, false
end

local function push(s, e)
  e[NEXT] = s.head
  if s.head then s.head[PREV] = e else s.tail = e end
  s.head = e
end

local function forget(s, e)
  unlink(s, e)
  s.entries[e[KEY]] = nil
  s.count = s.count - 1
end

-- remember keeps what a lookup said of a key: a shard, or false for none.
local function remember(s, key, shard, fresh, dead, most)
  local e = s.entries[key]
  if e then forget(s, e) end
  while s.count >= most do forget(s, s.tail) end
  e = {key, shard, fresh, dead, token() .. "@" .. s.called, false, false, 0, 0}
  s.entries[key] = e
  s.count = s.count + 1
  push(s, e)
  return e
end

-- sweep forgets the answers of policies that no request needs any more.
local function sweep(now)
  for id, s in pairs(stores) do
    if s.used + unused < now then stores[id] = nil end
  end
  for id, c in pairs(compiled) do
    if c.used + unused < now then compiled[id] = nil end
  end
end

local function store(p, called, now)
  local s = stores[p.answers]
  if not s then
    s = {policy = p.stat, called = called, entries = {}, head = false, tail = false, count = 0, failures = 0, probe = 0, open = {}, first = 1, last = 0, asked = 0}
    stores[p.answers] = s
  end
  s.used = now
  return s
end

-- compile reads the policies of a virtual host, once for all requests.
local function compile(context, id, now)
  sweep(now)
  local c = {used = now, called = context:get("called"), policies = context:get("policies"), headers = {}}
  for _, p in ipairs(c.policies) do
    p.hits, p.counted = 0, now - often
    if p.header then table.insert(c.headers, p.header) end
    for _, name in ipairs({"timeout", "ttl", "stale", "negative", "most", "limit"}) do
      p[name] = tonumber(p[name])
    end
    for _, shard in pairs(p.shards or {}) do
      for _, part in ipairs(shard) do part.weight = tonumber(part.weight) end
    end
    for _, part in ipairs(p.key) do
      if part.path then part.path = tonumber(part.path) end
    end
  end
  compiled[id] = c
  return c
end

local function hex(c) return string.format("%%%02X", c:byte()) end

local function escape(s)
  if not s:find("[^%w%-%._~]") then return s end
  return (s:gsub("[^%w%-%._~]", hex))
end

local function unescape(s)
  if not s:find("%", 1, true) then return s end
  return (s:gsub("%%(%x%x)", function(h) return string.char(tonumber(h, 16)) end))
end

local function segment(path, n)
  local stop = path:find("?", 1, true) or #path + 1
  local from, i = 1, 0
  while from < stop do
    local slash = path:find("/", from, true)
    if not slash or slash > stop then slash = stop end
    if slash > from then
      if i == n then return unescape(path:sub(from, slash - 1)) end
      i = i + 1
    end
    from = slash + 1
  end
end

local function query(path, name)
  local from = path:find("?", 1, true)
  if not from then return end
  for k, v in path:sub(from + 1):gmatch("([^&=#]+)=([^&#]*)") do
    if unescape(k) == name then return unescape((v:gsub("%+", " "))) end
  end
end

local function cookie(headers, name)
  for k, v in (headers:get("cookie") or ""):gmatch("%s*([^=;]+)=([^;]*)") do
    if k == name then return v end
  end
end

-- keyOf is the key of a request, or nothing where a part of it is missing.
local function keyOf(parts, headers, path)
  local out
  for i = 1, #parts do
    local part = parts[i]
    local v = part.text
    if part.path then v = segment(path, part.path)
    elseif part.header then v = headers:get(part.header)
    elseif part.query then v = query(path, part.query)
    elseif part.cookie then v = cookie(headers, part.cookie) end
    if not v or v == "" or #v > longest then return end
    out = out and out .. v or v
  end
  if out and #out <= longest then return out end
end

local function begins(path, prefixes)
  for i = 1, #prefixes do
    if path:find(prefixes[i], 1, true) == 1 then return true end
  end
  return false
end

local function matches(p, headers, path)
  if p.prefixes and not begins(path, p.prefixes) then return false end
  for i = 1, p.headers and #p.headers or 0 do
    local h = p.headers[i]
    local got = headers:get(h.name)
    if not got or (h.value and got ~= h.value) then return false end
  end
  return true
end

-- enter is whether one more lookup may be made. Who makes it calls leave; where
-- that is not called, since the client has gone, the time-out ends it.
local function enter(s, p, now)
  while s.first <= s.last and (not s.open[s.first] or s.open[s.first] < now) do
    if s.open[s.first] then s.asked = s.asked - 1 end
    s.open[s.first] = nil
    s.first = s.first + 1
  end
  if s.asked >= p.limit then return false end
  if s.failures >= patience then
    if now < s.probe then return false end
    s.probe = now + p.timeout
  end
  s.asked, s.last = s.asked + 1, s.last + 1
  s.open[s.last] = now + p.timeout + 1000
  return s.last
end

local function leave(s, ticket, failed, later)
  if s.open[ticket] then
    s.open[ticket] = nil
    s.asked = s.asked - 1
  end
  if not failed then s.failures = 0; return end
  s.failures = s.failures + 1
  s.probe = later
end

-- takes is whether a policy can send requests to a shard. What was cached before the
-- policy changed may be another.
local function takes(p, shard)
  if p.shards then return p.shards[shard] ~= nil end
  return #shard <= 253 and shard:match("^%w[%w%.%-]*$") ~= nil
end

-- ask is what the lookup service says of a key: a shard, false for none, or
-- nothing where it does not say.
local function ask(handle, p, key)
  local ok, answer, body = pcall(handle.httpCall, handle, p.cluster,
    {[":method"] = "GET", [":path"] = p.path .. escape(key), [":authority"] = p.authority}, nil, p.timeout)
  if not ok or not answer then return end
  if answer[":status"] == "404" then return false end
  if answer[":status"] ~= "200" then return end
  local shard = answer["x-shard"] or (body and body:match("^%s*(.-)%s*$"))
  if shard and takes(p, shard) then return shard end
end

-- find returns the shard of a key or nothing, why, and the answer that says so.
local function find(handle, p, s, key, sent, now)
  local e = s.entries[key]
  local moved = e and sent == e[MARK]
  if moved or e and e[SHARD] and p.shards and not p.shards[e[SHARD]] then
    forget(s, e)
    e = nil
  end
  if e then
    if now < e[FRESH] then
      if now - e[USED] >= often then
        e[USED] = now
        if s.head ~= e then unlink(s, e); push(s, e) end
      end
      return e[SHARD], e[SHARD] and "hit" or "unknown", e
    end
    if now >= e[DEAD] then e = nil end
  end
  local old = e and e[SHARD] and e
  if old and now < old[ASKED] then return old[SHARD], "stale", old end
  local ticket = enter(s, p, now)
  if not ticket then
    if old then return old[SHARD], "stale", old end
    return nil, "overflow"
  end
  if old then old[ASKED] = now + p.timeout end
  local shard = ask(handle, p, key)
  now = handle:timestamp()
  leave(s, ticket, shard == nil, now + math.max(p.negative, 1000))
  if shard then return shard, moved and "moved" or "miss", remember(s, key, shard, now + p.ttl, now + p.ttl + p.stale, p.most) end
  if shard == nil and old then
    if s.entries[key] == old then old[FRESH] = now + p.negative end
    return old[SHARD], "stale", old
  end
  local why = shard == nil and "error" or "unknown"
  if p.negative == 0 then return nil, why end
  return nil, why, remember(s, key, false, now + p.negative, now + p.negative, p.most)
end

-- choose is one of the hosts of a shard, by their weights.
local function choose(hosts)
  if #hosts == 1 then return hosts[1].host end
  local n = math.random() * hosts.total
  for _, h in ipairs(hosts) do
    n = n - h.weight
    if n < 0 then return h.host end
  end
  return hosts[#hosts].host
end

-- send sends a request to a shard.
local function send(headers, p, called, shard, e)
  if p.header then headers:replace(p.header, shard) end
  local hosts = p.shards and p.shards[shard]
  headers:replace(mark, e and e[MARK] or "@" .. called)
  if hosts and #hosts > 0 then
    if not hosts.total then
      local total = 0
      for _, h in ipairs(hosts) do total = total + (h.weight or 1) end
      hosts.total = total
    end
    headers:replace(":authority", choose(hosts))
  elseif not hosts and not p.header then
    headers:replace(":authority", shard)
  end
end

-- count makes known what became of a request: by a counter, and by metadata that
-- access logs can show. Each is calls into the proxy, which are what a request whose
-- answer is there costs: hits are gathered, and their metadata are left out, but for
-- a proxy that shows a response nothing else of its request.
local function count(handle, p, why, shard, key, now)
  if why == "hit" then
    p.hits = p.hits + 1
    if complete and now - p.counted < often then return end
  end
  if handle.stats then
    if why ~= "hit" then handle:stats():counter(p.stat .. "." .. why):inc() end
    if p.hits > 0 and now - p.counted >= often then
      handle:stats():counter(p.stat .. ".hit"):add(p.hits)
      p.hits, p.counted = 0, now
    end
  end
  if why == "hit" and complete then return end
  local m = handle:streamInfo():dynamicMetadata()
  m:set(namespace, "decision", why)
  m:set(namespace, "request", p.stat .. " " .. (shard or "-") .. " " .. (key and escape(key) or ""))
end

local function route(handle, c, p, headers, path, sent, now)
  local key, s = keyOf(p.key, headers, path)
  local shard, why, e
  if key then
    s = store(p, c.called, now)
    shard, why, e = find(handle, p, s, key, sent, now)
  else
    why = "no_key"
  end
  count(handle, p, why, shard or p.default, key, now)
  -- Headers that were there before a lookup are not to be used after it.
  if shard then return send(why == "hit" and headers or handle:headers(), p, c.called, shard, e) end
  if p.deny then
    handle:respond({[":status"] = "503", ["x-portolan-routing"] = why},
      "no shard is known for this request: " .. p.policy .. " says " .. why .. "\n")
  elseif p.default then
    send(handle:headers(), p, c.called, p.default, e)
  end
end

function envoy_on_request(handle)
  local context = handle:filterContext()
  local id = context and context:get("id")
  if not id then return end
  local headers, now = handle:headers(), handle:timestamp()
  local c = compiled[id]
  if not c then
    c, complete = compile(context, id, now), handle.requestHeaders ~= nil
  end
  c.used = now
  local sent = headers:get(mark)
  if sent then headers:remove(mark) end
  for i = 1, #c.headers do
    if headers:get(c.headers[i]) then headers:remove(c.headers[i]) end
  end
  local path = headers:get(":path") or "/"
  for i = 1, #c.policies do
    local p = c.policies[i]
    if matches(p, headers, path) then return route(handle, c, p, headers, path, sent, now) end
  end
end

-- drop forgets the answer by which a request was sent. Where its metadata alone
-- tell, the same policy of another host may have an answer for the key too: that is
-- asked for once more.
local function drop(handle)
  local sent = complete and handle:requestHeaders():get(mark)
  local said = not complete and handle:streamInfo():dynamicMetadata():get(namespace)
  local policy, key = (said and said.request or ""):match("^(%S+) %S+ (.+)$")
  key = key and unescape(key)
  for _, s in pairs(stores) do
    local e = s.policy == policy and s.entries[key]
    if sent then
      for _, one in pairs(s.entries) do
        if one[MARK] == sent then e = one end
      end
    end
    if e then forget(s, e) end
  end
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local said = headers:get(":status")
  if said ~= redirect and said ~= "421" and said ~= "307" then return end
  local answer, not_mine = headers:get(was), headers:get(wrong)
  if answer then
    headers:remove(was)
    -- A service that makes the header up can say no more than it can itself.
    local status, location = answer:match("^([1-5]%d%d) ?(.*)$")
    if status then
      headers:replace(":status", status)
      if location ~= "" then headers:replace("location", location) else headers:remove("location") end
    end
  end
  if not_mine then drop(handle) end
end
