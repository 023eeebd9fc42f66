-- SPDX-License-Identifier: Apache-2.0
-- One batch of steps on records, all in one call. What the verbs mean is in store/store.hpp; this is
-- the same in the server's language, for exclusive grants.
--
-- KEYS[2i-1], [2i] of entry i: the key itself (the lock), and the key of the rest of its record
-- ARGV[1], [2]     the process that asks, and who is behind it
-- ARGV[2i+1]       of entry i: its words, see below; ARGV[2i+2] its payload (a result, a reason)
--
--   a HOLDER TTL FENCES FLOOR CAPACITY ATTACHED SEEN NOT_AFTER MARK FRESH KEEP     acquire
--   n HOLDER TTL FENCES NEW_HOLDER ATTACHED                                        renew
--   r HOLDER HAS_RESULT LATE FRESH KEEP                                            release
--   v FENCE                                                                        revoke
--   b DURATION                                                                     block
--   q                                                                              look, for listings
--
-- Returns the server's time, then one array per entry. Times and durations are whole microseconds;
-- -1 is for ever; NOT_AFTER -1 is always. Fences are below 2^53 and travel as text.
--
-- The lock is the plain string that SET key token NX PX ttl makes, so that whoever locks that way
-- and we exclude each other:
--   dibs1 HOLDER FIRST LAST GRANTED a|d PROCESS WHO
-- The rest of the record is a hash:
--   v format   f largest fence   h holder of the last grant, until it gives it back
--   x its expiry   o set: an operator ended it   r result   m FENCE IS_MARK WRITTEN FRESH_UNTIL
--   KEEP_UNTIL   b blocked until   w why
--
-- Per entry: checks first, writes last; the fence before the lock. An entry that fails, fails alone.

local fence_limit = 9007199254740991
local trace_kept = 3600000000
local format = '1'

local function text(number)
    return string.format('%.0f', number)
end

-- A refusal by a command: an error for people, and whether something was written before it.
local function refuse(answer)
    error({entry = answer}, 0)
end

local function words_of(reply)
    return type(reply) == 'table' and reply.err
end

-- Servers do not always say which command it was that a user may not run.
local function named(fault, command)
    if string.find(fault, 'ACL failure', 1, true) or string.find(fault, 'run this command', 1, true) then
        return fault .. ' (' .. string.lower(command) .. ')'
    end
    return fault
end

-- Changes nothing; a server that takes no writes says so. What a replica, or a server that cannot
-- save, knows about a lock is not to be believed. A full server says so for the first write of a
-- script alone, so it is remembered here.
local full = false
local probe = words_of(redis.pcall('SETRANGE', KEYS[1], 0, ''))
if probe and string.match(probe, '^OOM') then
    full = probe
elseif probe and not string.match(probe, '^WRONGTYPE') then
    return redis.error_reply(named(probe, 'SETRANGE'))
end

local clock = redis.pcall('TIME')
if words_of(clock) then
    return redis.error_reply(named(clock.err, 'TIME'))
end
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

-- Before the first write of an entry that makes the record larger.
local function need_room()
    if full then
        refuse({'e', full, 0})
    end
end

local function later(by)
    return by < 0 and -1 or now + by
end

local function milliseconds(at)
    return text(math.ceil(at / 1000))
end

-- A command whose failure ends the entry. `dirty`: something of it was written already.
local function run(record, command, ...)
    local reply = redis.pcall(command, ...)
    local fault = words_of(reply)
    if fault then
        refuse({'e', named(fault, command), record and record.dirty and 1 or 0})
    end
    return reply
end

local function expiry_of(lock)
    local at = redis.pcall('PEXPIRETIME', lock)  -- since Redis 7
    if words_of(at) then
        at = run(nil, 'PTTL', lock)
        return at < 0 and at or (math.floor(now / 1000) + at) * 1000
    end
    return at < 0 and at or at * 1000
end

local function read(lock, rest)
    local record = {lock = lock, rest = rest, live = false, expires = 0}
    local raw = run(nil, 'GET', lock)
    local kept = run(nil, 'HMGET', rest, 'v', 'f', 'h', 'x', 'o', 'r', 'm', 'b', 'w')
    if kept[1] and kept[1] ~= format then
        refuse({'e', 'DIBSFORMAT ' .. kept[1], 0})
    end
    record.fence = tonumber(kept[2] or 0)
    record.last_holder = kept[3]
    record.last_expiry = tonumber(kept[4] or 0)
    record.ended = kept[5]
    record.result = kept[6]
    record.meta = kept[7]
    record.blocked = tonumber(kept[8] or 0)
    record.reason = kept[9]
    if record.meta then
        local fence, mark, written, fresh, keep =
            string.match(record.meta, '^(%d+) ([01]) (%d+) (%-?%d+) (%-?%d+)$')
        record.result_fence = tonumber(fence)
        record.fresh_until = tonumber(fresh)
        record.keep_until = tonumber(keep)
    end
    if raw then
        local holder, first, last, granted, attached =
            string.match(raw, '^dibs1 (%x+) (%d+) (%d+) (%d+) ([ad]) ')
        if not holder and string.match(raw, '^dibs%d+ ') then
            refuse({'e', 'DIBSFORMAT ' .. string.match(raw, '^dibs(%d+)'), 0})
        end
        record.raw = raw
        record.holder = holder
        if holder then
            record.first = tonumber(first)
            record.last = tonumber(last)
            record.fence = math.max(record.fence, record.last)
        end
        record.expires = expiry_of(lock)
        if record.expires == -1 and holder and holder == record.last_holder then
            -- Somebody took the ttl away. It was promised all the same.
            record.expires = record.last_expiry
        end
        record.live = record.expires == -1 or now < record.expires
    end
    return record
end

local function readable(record)
    return record.meta and (record.keep_until == -1 or now < record.keep_until)
end

-- Ends every answer about a record.
local function with_result(answer, record)
    if readable(record) then
        answer[5] = record.result
        answer[6] = record.meta
    else
        answer[5] = false
        answer[6] = false
    end
    return answer
end

-- The rest of a record goes when nothing in it matters any more. Fences rise by the clock without
-- it; the margin is for a clock that is set back.
local function let_expire(record)
    local keep = readable(record) and record.keep_until or 0
    if keep == -1 or record.blocked == -1 then
        redis.pcall('PERSIST', record.rest)
        return
    end
    local ends = math.max(keep, record.blocked, record.last_expiry + trace_kept,
                          math.max(record.fence, now) + trace_kept)
    redis.pcall('PEXPIREAT', record.rest, milliseconds(ends))
end

local function publish(record)
    local heard = redis.pcall('PUBLISH', record.rest, '')
    return words_of(heard) and 0 or heard
end

local function waiters(record)
    local found = redis.pcall('PUBSUB', 'NUMSUB', record.rest)
    return words_of(found) and 0 or found[2]
end

local function holder_answer(code, record)
    return with_result({code, record.live and record.raw or false,
                        record.live and record.expires or 0, 0}, record)
end

local function next_fences(stored, floor, wanted)
    local base = math.max(stored, floor)
    if now <= base then
        if base + 1 > fence_limit then
            refuse({'e', 'DIBSFENCE', 0})
        end
        return base + 1, base + 1
    end
    local count = math.min(math.max(wanted, 1), now - base)
    return now - count + 1, now
end

local function keep_result(record, fence, is_mark, payload, fresh, keep)
    need_room()
    local fresh_until = fresh == 0 and 0 or later(fresh)
    local keep_until = later(keep)
    if fresh_until == -1 or (keep_until ~= -1 and fresh_until > keep_until) then
        keep_until = fresh_until
    end
    local meta = text(fence) .. ' ' .. is_mark .. ' ' .. text(now) .. ' ' .. text(fresh_until) ..
        ' ' .. text(keep_until)
    run(record, 'HSET', record.rest, 'v', format, 'r', payload, 'm', meta)
    record.result = payload
    record.meta = meta
    record.keep_until = keep_until
end

local verbs = {}

function verbs.a(lock, rest, words, payload)
    local holder, ttl, fences, floor, capacity, attached, seen, not_after, mark, fresh, keep =
        string.match(words, '^a (%x+) (%d+) (%d+) (%d+) (%d+) ([ad]) (%d+) (%-?%d+) ([01]) ' ..
                            '(%-?%d+) (%-?%d+)$')
    local record = read(lock, rest)
    local until_when = now + tonumber(ttl)
    if tonumber(not_after) ~= -1 and now > tonumber(not_after) then
        return with_result({'l', 0, 0, 0}, record)
    end
    if record.live and record.holder == holder then
        run(record, 'PEXPIREAT', lock, milliseconds(until_when))
        record.last_expiry = math.ceil(until_when / 1000) * 1000
        redis.pcall('HSET', rest, 'v', format, 'f', text(record.fence), 'h', holder, 'x',
                    text(record.last_expiry))
        let_expire(record)
        return with_result({'g', text(record.first), text(record.last), record.last_expiry}, record)
    end
    if record.live and capacity ~= '1' then
        return with_result({'c', 0, 0, 0}, record)
    end
    if record.blocked == -1 or now < record.blocked then
        return with_result({'b', record.reason or '', record.blocked, 0}, record)
    end
    if record.live then
        return holder_answer('h', record)
    end
    if readable(record) and (record.fresh_until == -1 or now < record.fresh_until) and
        record.result_fence > tonumber(seen) then
        return with_result({'d', 0, 0, 0}, record)
    end
    if capacity ~= '1' then
        return with_result({'u', 0, 0, 0}, record)
    end

    need_room()
    local first, last = next_fences(record.fence, tonumber(floor), tonumber(fences))
    local found = with_result({'g', text(first), text(last), 0}, record)
    local expires = milliseconds(until_when)
    record.fence = last
    record.last_expiry = tonumber(expires) * 1000
    run(record, 'HSET', rest, 'v', format, 'f', text(last), 'h', holder, 'x',
        text(record.last_expiry))
    local given = redis.pcall('SET', lock,
                              'dibs1 ' .. holder .. ' ' .. text(first) .. ' ' .. text(last) .. ' ' ..
                                  text(now) .. ' ' .. attached .. ' ' .. ARGV[1] .. ' ' .. ARGV[2],
                              'PXAT', expires)
    if words_of(given) then
        redis.pcall('HDEL', rest, 'h', 'x')
        refuse({'e', named(words_of(given), 'SET'), 0})
    end
    if record.ended then
        redis.pcall('HDEL', rest, 'o')
    end
    if mark == '1' then
        local done, fault = pcall(keep_result, record, last, '1', payload, tonumber(fresh),
                                  tonumber(keep))
        if not done then
            redis.pcall('DEL', lock)
            redis.pcall('HDEL', rest, 'h', 'x')
            error(fault, 0)
        end
    end
    let_expire(record)
    found[4] = record.last_expiry
    return found
end

-- A live grant of this holder is not there: what became of it?
local function not_held(holder, record)
    local loss = 'gone'
    if record.live then
        loss = 'taken'
    elseif record.last_holder == holder then
        loss = record.ended and 'revoked' or (now >= record.last_expiry and 'expired' or 'gone')
    elseif record.last_holder then
        loss = 'taken'
    end
    return with_result({'x', loss, 0, 0}, record)
end

function verbs.n(lock, rest, words)
    local holder, ttl, fences, new_holder, attached =
        string.match(words, '^n (%x+) (%d+) (%d+) (%S+) ([ad])$')
    local record = read(lock, rest)
    if not record.live or record.holder ~= holder then
        return not_held(holder, record)
    end
    local expires = milliseconds(now + tonumber(ttl))
    local adopt = new_holder ~= '-'
    local first, last, raw = record.first, record.last, record.raw
    if tonumber(fences) > 0 and not full then
        local higher_first, higher_last = next_fences(record.fence, 0, tonumber(fences))
        -- Where this fails, and on a full server, the lease is prolonged with the fences it has.
        if not words_of(redis.pcall('HSET', rest, 'f', text(higher_last))) then
            first, last = higher_first, higher_last
            record.fence = last
        end
    end
    if adopt or first ~= record.first or last ~= record.last then
        local granted, was, process, who = string.match(raw, '^dibs1 %S+ %S+ %S+ (%d+) ([ad]) (%S+) (.*)$')
        if adopt then
            was, process, who = attached, ARGV[1], ARGV[2]
        end
        local value = 'dibs1 ' .. (adopt and new_holder or holder) .. ' ' .. text(first) .. ' ' ..
            text(last) .. ' ' .. granted .. ' ' .. was .. ' ' .. process .. ' ' .. who
        local set = redis.pcall('SET', lock, value, 'PXAT', expires)
        if words_of(set) then
            if adopt then
                refuse({'e', named(words_of(set), 'SET'), 0})
            end
            first, last = record.first, record.last
            run(record, 'PEXPIREAT', lock, expires)
        end
    else
        run(record, 'PEXPIREAT', lock, expires)
    end
    record.last_expiry = tonumber(expires) * 1000
    redis.pcall('HSET', rest, 'v', format, 'f', text(record.fence), 'h',
                adopt and new_holder or holder, 'x', text(record.last_expiry))
    let_expire(record)
    local renewed = with_result({'n', text(first), text(last), record.last_expiry}, record)
    renewed[7] = waiters(record)
    return renewed
end

function verbs.r(lock, rest, words, payload)
    local holder, has_result, late, fresh, keep =
        string.match(words, '^r (%x+) ([01]) ([01]) (%-?%d+) (%-?%d+)$')
    local record = read(lock, rest)
    local mine = record.live and record.holder == holder
    local in_time = mine
    if not mine and has_result == '1' and late == '1' and not record.live then
        mine = record.last_holder == holder and not record.ended
    end
    if not mine then
        return not_held(holder, record)
    end
    if has_result == '1' then
        keep_result(record, in_time and record.last or record.fence, '0', payload, tonumber(fresh),
                    tonumber(keep))
        record.dirty = true
    end
    if record.raw then
        run(record, 'DEL', lock)
    end
    redis.pcall('HDEL', rest, 'h', 'x', 'o')
    record.last_expiry = 0
    redis.pcall('HSET', rest, 'v', format, 'f', text(record.fence))
    let_expire(record)
    local ended = with_result({has_result == '1' and 'f' or 'r', 0, 0, 0}, record)
    ended[7] = publish(record)
    return ended
end

function verbs.v(lock, rest, words)
    local fence = tonumber(string.match(words, '^v (%d+)$'))
    local record = read(lock, rest)
    if not record.live or not record.holder or fence < record.first or fence > record.last then
        return holder_answer('m', record)
    end
    redis.pcall('HSET', rest, 'v', format, 'f', text(record.fence), 'h', record.holder, 'o', '1')
    run(record, 'DEL', lock)
    let_expire(record)
    publish(record)
    return {'v'}
end

function verbs.b(lock, rest, words, payload)
    local duration = tonumber(string.match(words, '^b (%-?%d+)$'))
    local record = read(lock, rest)
    local was_blocked = record.blocked == -1 or now < record.blocked
    if duration == 0 then
        run(record, 'HDEL', rest, 'b', 'w')
        record.blocked = 0
    else
        need_room()
        record.blocked = later(duration)
        run(record, 'HSET', rest, 'v', format, 'b', text(record.blocked), 'w', payload)
    end
    let_expire(record)
    if duration == 0 and was_blocked then
        publish(record)
    end
    return {'s'}
end

function verbs.q(lock, rest)
    local record = read(lock, rest)
    local shown = holder_answer('q', record)
    shown[7] = waiters(record)
    shown[8] = text(record.fence)
    shown[9] = record.blocked
    shown[10] = record.reason or ''
    return shown
end

local answers = {now}
for at = 1, #KEYS, 2 do
    local words = ARGV[at + 2]
    local done, answer = pcall(verbs[string.sub(words, 1, 1)], KEYS[at], KEYS[at + 1], words,
                               ARGV[at + 3])
    if not done then
        answer = type(answer) == 'table' and answer.entry or
            {'e', 'the script failed: ' .. tostring(type(answer) == 'table' and answer.err or answer),
             1}
    end
    answers[#answers + 1] = answer
end
return answers
