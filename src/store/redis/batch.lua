-- SPDX-License-Identifier: Apache-2.0
-- One batch of steps on records, all in one call. What the verbs mean is in store/store.hpp; this
-- is the same in the server's language.
--
-- KEYS[i], [n+i]   of entry i: the key itself (the lock), and the key of the rest of its record
-- KEYS[2n+1]       the mark of the database's fences
-- KEYS[2n+2]       for a strict caller alone: the epoch of the database
-- ARGV[1]          the words of all entries if they are the same; else, of each run of entries
--                  with the same words: COUNT WORDS and the end of the line
--   U TTL TTL_MS REST_TTL FENCES                                        acquire, attached
--   V TTL TTL_MS REST_TTL FENCES                                        acquire, detached
--   A TTL TTL_MS REST_TTL FENCES                                        acquire, attached, traced
--   D TTL TTL_MS REST_TTL FENCES                                        acquire, detached, traced
--   N TTL TTL_MS REST_TTL                                               renew
--   R                                                                   release
--   a TTL FENCES FLOOR WEIGHT CAPACITY ATTACHED SEEN MARK FRESH KEEP QUEUE NOTIFY   acquire, with all
--                                                                       options
--   n TTL FENCES NEW_HOLDER ATTACHED                                    renew
--   r HAS_RESULT LATE FRESH KEEP                                        release
--   v FENCE                                                             revoke
--   b DURATION                                                          block
--   q                                                                   look, for listings
-- ARGV[1+i]        of entry i: dibs1 HOLDER
-- ARGV[n+2]        who asks: PROCESS WHO
-- ARGV[n+3]        the earliest NOT_AFTER of the entries; then that of each of them if they differ,
--                  one behind the other; of a strict caller, then a blank and the longest ttl that
--                  it grants
-- then the payloads (results, reasons) of the entries with MARK or HAS_RESULT and of b, in their
-- order
-- Each key and each argument costs as much as a simple command does. So where there is nothing but
-- R and N, all but the keys and arguments of the entries is left out.
--
-- Returns the server's time, then one answer per entry: a number or a text from the short way, an
-- array from the long one. Usually less:
--   NOW         everything was given back, and nobody listens to it, or granted; the fences, one per
--               grant and in their order, end at the time
--   NOW FENCE   the same; they begin with that one
--   a number    a lone entry was given back, and so many listen to it
-- Times and durations are whole microseconds; -1 is for ever. REST_TTL is
-- in milliseconds: the ttl, an hour, and a second. TTL_MS and QUEUE are in milliseconds, too.
-- HOLDER has 32 characters, NOT_AFTER 16. Fences are below 2^53, which a number of Lua's holds;
-- never made a text as a whole by its default formatting.
--
-- The lock is the plain string that SET key token NX PX ttl makes, so that whoever locks that way
-- and we exclude each other:
--   dibs1 HOLDER FIRST LAST GRANTED a|d|A|D|UTTL_MS|VTTL_MS PROCESS WHO
-- A capital says that the rest of the record is short, and need not be read to prolong the lease
-- or to give it back; so nobody is in the queue. U and V say that there is none: no trace is left
-- of such a lease. Whoever has to write a rest meanwhile makes it a or d.
--
-- Whoever is refused, and asked to be notified, leaves word with the lock: the name of its process
-- behind the text, each name between characters 30, which are in no WHO. The end of the lock by a
-- release, or by an operator, tells them, each on a channel of its own and by the name of the rest;
-- and the names end with it. So do they by expiry, of which nobody is told.
--
-- Where several share the key, it has the same place and keeps out whoever locks the other way:
--   dibs1 s CAPACITY SHARE SHARE ...
-- each SHARE with a character 30 behind it, which is in no WHO here:
--   WEIGHT EXPIRES HOLDER FIRST LAST GRANTED a|d PROCESS WHO
-- A share is alive until EXPIRES, 0 when an operator ended it; the string expires with the last of
-- them. One that is over stays as a trace until the next grant, or until the string goes. In the
-- rest stands the holder of the last grant, as ever.
--
-- The mark is not below any fence that was granted without a rest, nor below those of other grants
-- but where a floor has led them beyond the clock. It never expires:
--   dibs1 FENCE
-- Each grant is above the mark and raises it. So the fences of a key rise also where its rest is
-- gone, or never was. A batch takes as many at once as it has grants.
--
-- The rest is a string too. It is short when its first 74 characters are all:
--   dibs1 HOLDER FENCE EXPIRY ENDED BLOCKED QUEUED META LENGTH REASON RESULT
-- HOLDER of the last grant, EXPIRY of its lock as the server has it, FENCE the largest, ENDED 1 by
-- an operator. META of the result: FENCE IS_MARK WRITTEN FRESH_UNTIL KEEP_UNTIL. LENGTH is that of
-- REASON. Numbers of the lock and of the first part have 16 digits, so that their place is known
-- and that they compare as texts.
--
-- The server keeps a key through the millisecond at which it expires. So a lock expires there a
-- millisecond before its lease is over, and what is there is live.
--
-- A short rest that expires less than an hour after EXPIRY was given back: so giving back takes no
-- memory, and works on a full server.
--
-- QUEUED 1: somebody may be in the queue. That is a sorted set beside the rest, of holders by the
-- number of their ticket, and a string per ticket, which the server keeps for as long as the ticket
-- is alive:
--   t1 NUMBER ENTERED PROCESS WHO
-- Its head is woken alone, by the name of the rest on a channel of its process. Everybody else
-- listens to the name of the rest, a message there is the process whose step it tells of; or has
-- left word.
--
-- Strict: after the server has begun anew, or another one has taken over, it may not know of leases
-- that are held. Its replication id is another one then, also where a former primary is back. So
-- nothing is granted until every lease of before is over. The epoch, which never expires:
--   dibs1 REPLICATION_ID GRANTS_FROM LONGEST_TTL
--
-- Per entry: checks first, writes last; the fence before the lock. An entry that fails, fails
-- alone.
-- The short way takes what is done all day: a free key, a grant of one's own, nothing else kept. It
-- leaves what it meets otherwise, errors too, to the long way, which takes everything.

local call, byte, sub, find = redis.pcall, string.byte, string.sub, string.find
local keys, argv = KEYS, ARGV
local clock

-- A lone caller waits for what is done here, so what it does all day is done without anything that
-- only others need: giving back, and taking a free key, where there is no rest. What is met
-- otherwise, errors too, is left to what comes behind.
if argv[1] == 'R' and #keys == 2 then
    local value = call('GET', keys[1])
    local letter = value and #value > 91 and find(value, argv[2], 1, true) == 1 and
        not find(value, '\30', 92, true) and byte(value, 91)
    if (letter == 85 or letter == 86) and call('DEL', keys[1]) == 1 then
        local from = (find(value, ' ', 92, true) or 91) + 1
        local process = sub(value, from, (find(value, ' ', from, true) or 0) - 1)
        local heard = call('PUBLISH', keys[2], process)
        return type(heard) == 'number' and heard or 0
    end
elseif #keys == 3 and find(argv[1], '^[UV] ') and sub(argv[1], -2) == ' 1' then
    local words = argv[1]
    local ttl_end = find(words, ' ', 3, true)
    clock = call('TIME')
    local part = clock[2]
    part = part and (#part == 6 and part or sub('00000' .. part, -6))
    local now_text = part and clock[1] .. part
    -- In whole milliseconds the server comes to the same end by itself, unless one just begins.
    if part and #now_text == 16 and now_text <= argv[4] and sub(part, 4) ~= '000' and
        sub(words, ttl_end - 3, ttl_end - 1) == '000' and call('EXISTS', keys[1], keys[2]) == 0 then
        local fence = 'dibs1 ' .. now_text
        local kept = call('SET', keys[3], fence, 'GET')
        if kept == false or (#kept == 22 and kept < fence and find(kept, 'dibs1 ', 1, true)) then
            local ttl_ms = sub(words, ttl_end + 1, find(words, ' ', ttl_end + 1, true) - 1)
            local text = ' ' .. now_text
            local done = call('SET', keys[1],
                              argv[2] .. text .. text .. text .. ' ' .. sub(words, 1, 1) .. ttl_ms ..
                              ' ' .. argv[3], 'PX', ttl_ms)
            if done.ok then
                return now_text
            end
        elseif not kept.err then
            call('SET', keys[3], kept)
        end
    end
end

local match, format, char = string.match, string.format, string.char
local ceil, floor = math.ceil, math.floor

local short = 74
-- Of the names that are left with a lock: those of sixty processes or so. More listen.
local words_max = 1024
local nobody = '00000000000000000000000000000000'
-- Nothing but R and N.
local brief = #keys % 2 == 0 and #argv == #keys / 2 + 1
local entries = brief and #keys / 2 or floor((#keys - 1) / 2)
local strict = #keys > 2 * entries + 1
local asking, ends = argv[entries + 2], argv[entries + 3] or '9007199254740991'
local fence_limit = 9007199254740991
local mark_key, mark = keys[2 * entries + 1], nil

-- What a message of a release says: who gave the key back. Where nothing says who asks, the lock does
-- that it had.
local function process_asking(lock)
    return asking and match(asking, '^%S+') or
        lock and match(lock, '^dibs1 %x+ %d+ %d+ %d+ %S+ (%S+)') or ''
end

local function sixteen(number)
    return format('%016.0f', number)
end

-- Servers do not always say which command it was that a user may not run, or that they lack.
local function named(fault, command)
    if find(fault, 'ACL failure', 1, true) or find(fault, 'run this command', 1, true) or
        find(fault, 'command called from', 1, true) then
        return fault .. ' (' .. string.lower(command) .. ')'
    end
    return fault
end

-- Changes nothing; a server that takes no writes says so. What a replica, or a server that cannot
-- save, knows about a lock is not to be believed. A full server says so for the first write of a
-- script alone, so it is remembered.
local full = false
local function refusal()
    local probe = call('SETRANGE', keys[1], 0, '')
    probe = type(probe) == 'table' and probe.err
    if probe and find(probe, '^OOM') then
        full = probe
    elseif probe and not find(probe, '^WRONGTYPE') then
        return redis.error_reply(named(probe, 'SETRANGE'))
    end
end

-- A lone entry on the short way begins with a write of its own.
if entries > 1 then
    local refused = refusal()
    if refused then
        return refused
    end
end

clock = clock or call('TIME')
if clock.err then
    return redis.error_reply(named(clock.err, 'TIME'))
end
local now = clock[1] * 1000000 + clock[2]
-- By hand, since formatting takes ten times as long.
local now_text = clock[1] .. sub('00000' .. clock[2], -6)
if #now_text ~= 16 then
    now_text = sixteen(now)
end

-- When the server grants again, for a strict caller; or why that is not known.
local function ready_again()
    local epoch = keys[2 * entries + 2]
    local ttl = tonumber(match(ends, '%d+$'))
    local info, kept = call('INFO', 'replication'), call('GET', epoch)
    if type(info) == 'table' or type(kept) == 'table' then
        return nil, type(info) == 'table' and named(info.err, 'INFO') or named(kept.err, 'GET')
    end
    local id = match(info, 'master_replid:(%x+)')
    local known, from, longest = match(kept or '', '^dibs1 (%x+) (%d+) (%d+)$')
    from, longest = tonumber(from), tonumber(longest)
    if kept and not known then
        local version = match(kept, '^dibs(%d+) ')
        return nil, version and version ~= '1' and 'DIBSFORMAT ' .. version or
            'WRONGTYPE ' .. epoch .. ' is none of ours'
    end
    if id == known and longest >= ttl then
        return from
    end
    longest = math.max(longest or 0, ttl)
    from = id == known and from or now + longest
    local done = call('SET', epoch, format('dibs1 %s %.0f %.0f', id, from, longest))
    -- What cannot be kept in mind holds for this batch alone, and the next one begins anew.
    return done.err and now + longest or from
end

local ready = 0
if strict then
    local fault
    ready, fault = ready_again()
    if fault then
        return redis.error_reply(fault)
    end
end

-- The long way. Functions are made by running over them, so this is done for those who need it.
local function all_verbs()
    local trace_kept = 3600000000
    local next_payload = entries + 3
    local verbs = {}

    local function words_of(reply)
        return type(reply) == 'table' and reply.err
    end

    local function milliseconds(at)
        return format('%.0f', ceil(at / 1000))
    end

    -- A refusal by a command: an error for people, and whether something was written before it.
    local function refuse(answer)
        error({entry = answer}, 0)
    end

    -- Before the first write of an entry that makes the record larger.
    local function need_room()
        if full then
            refuse({'e', full, 0})
        end
    end

    local function later(by)
        return by < 0 and -1 or now + by
    end

    -- A command whose failure ends the entry. `dirty`: something of it was written already.
    local function run(record, command, ...)
        local reply = call(command, ...)
        local fault = words_of(reply)
        if fault then
            refuse({'e', named(fault, command), record and record.dirty and 1 or 0})
        end
        return reply
    end

    local function expiry_of(key)
        local at = call('PEXPIRETIME', key)  -- since Redis 7
        if words_of(at) then
            at = run(nil, 'PTTL', key)
            return at < 0 and at or (floor(now / 1000) + at + 1) * 1000
        end
        return at < 0 and at or (at + 1) * 1000
    end

    -- When the lock has to expire for a lease that is over at that time.
    local function last_millisecond(at)
        return format('%.0f', at / 1000 - 1)
    end

    local function refuse_format(text)
        local version = match(text, '^dibs(%d+) ')
        if version and version ~= '1' then
            refuse({'e', 'DIBSFORMAT ' .. version, 0})
        end
    end

    local function none_of_ours(name)
        refuse({'e', 'WRONGTYPE ' .. name .. ' is none of ours', 0})
    end

    local function read_rest(record, kept)
        refuse_format(kept)
        local holder, fence, expiry, ended, first_end =
            match(kept, '^dibs1 (%x+) (%d+) (%d+) ([01])()')
        if first_end ~= short + 1 then
            none_of_ours(record.rest)
        end
        record.kept = kept
        record.fence = tonumber(fence)
        if holder ~= nobody then
            record.last_holder = holder
            record.last_expiry = tonumber(expiry) + 1000
            record.ended = ended == '1'
        end
        if #kept == short then
            return
        end
        local blocked, queued, meta, length, at =
            match(kept, '^ (%-?%d+) ([01]) (%d+ [01] %d+ %-?%d+ %-?%d+) (%d+) ()', short + 1)
        if not at or at + length > #kept + 1 then
            none_of_ours(record.rest)
        end
        record.queued = queued == '1'
        record.was_queued = record.queued
        record.blocked = tonumber(blocked)
        record.reason = sub(kept, at, at + length - 1)
        if sub(meta, 1, 2) ~= '0 ' then
            local result_fence, fresh, keep = match(meta, '^(%d+) %d %d+ (%S+) (%S+)$')
            record.meta = meta
            record.result = sub(kept, at + length)
            record.result_fence = tonumber(result_fence)
            record.fresh_until = tonumber(fresh)
            record.keep_until = tonumber(keep)
        end
    end

    local function read_shares(record)
        local capacity, at = match(record.raw, '^dibs1 s (%d+) ()')
        -- Who has the key cannot be told from a text that is cut off.
        if not capacity or sub(record.raw, -1) ~= '\30' then
            none_of_ours(record.lock)
        end
        record.capacity, record.taken, record.shares = tonumber(capacity), 0, {}
        for text in string.gmatch(sub(record.raw, at), '[^\30]*\30') do
            local weight, expires, holder, first, last, tail =
                match(text, '^(%d+) (%d+) (%x+) (%d+) (%d+) (.*)\30$')
            if not weight then
                none_of_ours(record.lock)
            end
            local one = {weight = tonumber(weight), expires = tonumber(expires), holder = holder,
                         first = tonumber(first), last = tonumber(last), tail = tail}
            record.shares[#record.shares + 1] = one
            record.fence = math.max(record.fence, one.last)
            if now < one.expires then
                record.expires = record.live and math.min(record.expires, one.expires) or
                    one.expires
                record.taken = record.taken + one.weight
                record.live = true
            end
        end
    end

    -- Of one who shares the key, alive or not.
    local function share_of(record, holder)
        for at = 1, record.shares and #record.shares or 0 do
            if record.shares[at].holder == holder then
                return record.shares[at], now < record.shares[at].expires, at
            end
        end
    end

    -- The lock of those who share the key, and when the last of them ends.
    local function text_of_shares(record)
        local texts, ends = {format('dibs1 s %.0f ', record.capacity)}, 0
        for at = 1, #record.shares do
            local one = record.shares[at]
            texts[at + 1] = format('%.0f ', one.weight) .. sixteen(one.expires) .. ' ' ..
                one.holder .. ' ' .. sixteen(one.first) .. ' ' .. sixteen(one.last) .. ' ' ..
                one.tail .. '\30'
            ends = math.max(ends, one.expires)
        end
        return table.concat(texts), ends
    end

    local function write_shares(record)
        local text, ends = text_of_shares(record)
        if ends <= now then
            record.live = false
            run(record, 'DEL', record.lock)
            return
        end
        -- A full server takes this, and then takes what follows, too.
        run(record, 'PEXPIREAT', record.lock, last_millisecond(ends))
        record.dirty = true
        run(record, 'SET', record.lock, text, 'PXAT', last_millisecond(ends))
    end

    local function tail_of_share(granted, attached)
        return granted .. ' ' .. attached .. ' ' .. string.gsub(asking, '\30', '?')
    end

    local function read(lock, rest)
        local record = {lock = lock, rest = rest, live = false, expires = 0, fence = 0,
                        last_expiry = 0, ended = false, blocked = 0, reason = '', queued = false,
                        was_queued = false}
        local raw = run(nil, 'GET', lock)
        local kept = run(nil, 'GET', rest)
        if kept then
            read_rest(record, kept)
        end
        if raw and sub(raw, 1, 8) == 'dibs1 s ' then
            record.raw = raw
            read_shares(record)
        elseif raw then
            local holder, first, last, letter, ttl_ms =
                match(raw, '^dibs1 (%x+) (%d+) (%d+) %d+ ([ADUVad])(%d*) ')
            if holder and find(letter, '[UV]') and ttl_ms == '' then
                holder = nil
            end
            if not holder then
                refuse_format(raw)
            else
                local from = find(raw, '\30', 92, true)
                if from then
                    record.left_word = sub(raw, from)
                    raw = sub(raw, 1, from - 1)
                end
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
            if letter == 'U' or letter == 'V' then
                if record.expires == -1 then
                    -- The same. By when is not known; by then it is over.
                    record.expires = ceil((now + ttl_ms * 1000) / 1000) * 1000
                    call('PEXPIREAT', lock, last_millisecond(record.expires))
                end
                record.ttl_ms = ttl_ms
                record.untraced = not kept
                record.last_holder = holder
                record.last_expiry = record.expires
                record.ended = false
            end
            record.live = record.expires == -1 or now < record.expires
        elseif record.last_holder and #kept == short then
            local ends = expiry_of(rest)
            if ends ~= -1 and ends < record.last_expiry + trace_kept then
                record.last_holder = nil
                record.last_expiry = 0
                record.ended = false
            end
        end
        return record
    end

    local function readable(record)
        return record.meta and (record.keep_until == -1 or now < record.keep_until)
    end

    local function blocked(record)
        return record.blocked == -1 or now < record.blocked
    end

    -- The rest of a record goes when nothing in it matters any more. Fences rise by the clock
    -- without it; the margin is for a clock that is set back.
    local function end_of(record)
        local keep = readable(record) and record.keep_until or 0
        if keep == -1 or record.blocked == -1 then
            return -1
        end
        return math.max(keep, record.blocked, record.last_expiry + trace_kept,
                        math.max(record.fence, now) + trace_kept)
    end

    -- Writes all but the lock; the fault, if it cannot. `more`: not the first part alone is new.
    local function write(record, more)
        local text = 'dibs1 ' .. (record.last_holder or nobody) .. ' ' ..
            sixteen(record.fence) .. ' ' .. sixteen(math.max(record.last_expiry - 1000, 0)) ..
            (record.ended and ' 1' or ' 0')
        local has_result, has_hold = readable(record), blocked(record)
        local ends = end_of(record)
        more = more or record.queued ~= record.was_queued
        if not more and has_result and record.kept then
            -- It may be large.
            local fault = words_of(call('SETRANGE', record.rest, 0, text))
            if fault then
                return named(fault, 'SETRANGE')
            elseif ends == -1 then
                call('PERSIST', record.rest)
            else
                call('PEXPIREAT', record.rest, milliseconds(ends))
            end
            return nil
        end
        if has_result or has_hold or record.queued then
            text = text .. ' ' .. format('%.0f', has_hold and record.blocked or 0) ..
                (record.queued and ' 1 ' or ' 0 ') ..
                (has_result and record.meta or '0 0 0 0 0') .. ' ' .. #record.reason .. ' ' ..
                record.reason .. (has_result and record.result or '')
        end
        local done = ends == -1 and call('SET', record.rest, text) or
            call('SET', record.rest, text, 'PXAT', milliseconds(ends))
        if words_of(done) then
            return named(done.err, 'SET')
        end
        record.was_queued = record.queued
        return nil
    end

    -- As above, for steps that a full server takes too: then the record is behind, but lives on.
    local function write_if_room(record)
        if write(record) then
            local ends = end_of(record)
            if ends ~= -1 then
                call('PEXPIREAT', record.rest, milliseconds(ends))
            end
        end
    end

    local function must_write(record, more)
        local fault = write(record, more)
        if fault then
            refuse({'e', fault, 0})
        end
    end

    local function forget_holder(record)
        local expiry = record.last_expiry
        record.last_holder = nil
        record.last_expiry = 0
        record.ended = false
        if write(record) and record.kept and #record.kept == short then
            call('PEXPIREAT', record.rest,
                 milliseconds(math.min(now, expiry - 1000) + trace_kept - 1000))
        end
    end

    -- Ends every answer about a record.
    local function with_result(answer, record)
        local there = readable(record)
        answer[5] = there and record.result or false
        answer[6] = there and record.meta or false
        return answer
    end

    local function publish(record)
        local heard = call('PUBLISH', record.rest, process_asking(record.raw))
        return words_of(heard) and 0 or heard
    end

    -- The oldest live ticket: its holder and its text. Those before it are passed over.
    local function head(record)
        while record.queued do
            local first = run(record, 'ZRANGE', record.rest .. 'q', 0, 0)[1]
            local ticket = first and run(record, 'GET', record.rest .. 't' .. first)
            if ticket then
                return first, ticket
            elseif first then
                run(record, 'ZREM', record.rest .. 'q', first)
            else
                record.queued = false
            end
        end
    end

    local function process_of(ticket)
        return match(ticket, '^t1 %d+ %d+ (%S+)') or ''
    end

    -- Whoever may have the key now: the head of the queue, or all who race. How many hear it; more
    -- than one of a queue, since whoever asks may be one of those.
    local function wake(record)
        local first, ticket = head(record)
        if not first then
            return publish(record)
        end
        call('PUBLISH', ':~dibs@' .. process_of(ticket), record.rest)
        return 2
    end

    -- The channels of those who have left word with the lock.
    local function channels_of_words(record)
        local channels = {}
        for process in string.gmatch(record.left_word or '', '[^\30]+') do
            channels[#channels + 1] = ':~dibs@' .. process .. '!'
        end
        return channels
    end

    -- The lock has ended. How many of those who left word with it hear of that.
    local function notify(record)
        local told = 0
        for _, channel in ipairs(channels_of_words(record)) do
            local heard = call('PUBLISH', channel, record.rest)
            told = told + (words_of(heard) and 0 or heard)
        end
        record.left_word = nil
        return told
    end

    -- Who asks is to be told of the end of the lock. False: it has to listen by itself.
    local function leave_word(record)
        if full or not record.holder then
            return false
        end
        local name, known = match(asking, '^%S+') .. '\30', record.left_word or '\30'
        if find(known, '\30' .. name, 1, true) then
            return true
        end
        if #known + #name > words_max or
            words_of(call('SET', record.lock, record.raw .. known .. name, 'KEEPTTL')) then
            return false
        end
        record.left_word = known .. name
        return true
    end

    local function waiters(record)
        if record.queued then
            return 1
        end
        local found = call('PUBSUB', 'NUMSUB', record.rest, unpack(channels_of_words(record)))
        if words_of(found) then
            return 0
        end
        local all = found[2]
        for at = 4, #found, 2 do
            all = all + math.min(found[at], 1)
        end
        return all
    end

    local function holder_answer(code, record)
        return with_result({code, record.live and record.raw or false,
                            record.live and record.expires or 0, 0}, record)
    end

    -- The mark; or none, and why.
    local function known_mark()
        if mark then
            return mark
        end
        local kept = call('GET', mark_key)
        if words_of(kept) then
            return nil, named(kept.err, 'GET')
        end
        mark = kept and tonumber(match(kept, '^dibs1 (%d+)$')) or not kept and 0 or nil
        local version = not mark and match(kept, '^dibs(%d+) ')
        if version and version ~= '1' then
            return nil, 'DIBSFORMAT ' .. version
        end
        return mark, not mark and 'WRONGTYPE ' .. mark_key .. ' is none of ours' or nil
    end

    -- For a grant up to that fence; why it cannot. Of fences that a floor leads beyond the clock it
    -- takes no notice: all keys would have to follow.
    local function raise_mark(last)
        if last <= mark or last > math.max(now, mark + 1) then
            return nil
        end
        local set = call('SET', mark_key, 'dibs1 ' .. sixteen(last))
        if words_of(set) then
            return named(set.err, 'SET')
        end
        mark = last
        return nil
    end

    local function next_fences(stored, above, wanted)
        local base = math.max(stored, above, mark)
        if now <= base then
            if base + 1 > fence_limit then
                refuse({'e', 'DIBSFENCE', 0})
            end
            return base + 1, base + 1
        end
        local count = math.min(math.max(wanted, 1), now - base)
        return now - count + 1, now
    end

    local function payload()
        next_payload = next_payload + 1
        return argv[next_payload]
    end

    local function take_result(record, fence, is_mark, result, fresh, keep)
        local fresh_until = fresh == 0 and 0 or later(fresh)
        local keep_until = later(keep)
        if fresh_until == -1 or (keep_until ~= -1 and fresh_until > keep_until) then
            keep_until = fresh_until
        end
        record.result = result
        record.meta = format('%.0f %d %.0f %.0f %.0f', fence, is_mark, now, fresh_until, keep_until)
        record.fresh_until = fresh_until
        record.keep_until = keep_until
    end

    -- What renews and releases is to look at the rest from now on.
    local function take_capital(record)
        if record.live and record.holder and byte(record.raw, 91) < 97 then
            local letter = match(sub(record.raw, 91, 91), '[AU]') and 'a' or 'd'
            record.raw = sub(record.raw, 1, 90) .. letter .. match(record.raw, ' .*', 91)
            record.untraced = false
            run(record, 'SET', record.lock, record.raw .. (record.left_word or ''), 'KEEPTTL')
        end
    end

    -- It is not granted now: whoever asked for it stands in the queue from now on, or still does.
    local function in_queue(answer, record, holder, time)
        if time == 0 then
            return answer
        end
        local queue, name = record.rest .. 'q', record.rest .. 't' .. holder
        local ticket = run(record, 'GET', name)
        local rank = ticket and call('ZRANK', queue, holder)
        local number
        if type(rank) == 'number' then
            number = tonumber(match(ticket, '^t1 (%d+)'))
            run(record, 'PEXPIRE', name, time)
        else
            need_room()
            take_capital(record)
        end
        if not record.queued then
            record.queued = true
            must_write(record, true)
            record.dirty = true
        end
        if not number then
            local last = run(record, 'ZRANGE', queue, -1, -1, 'WITHSCORES')[2]
            number = last and math.max(last + 1, now) or now
            run(record, 'SET', name, 't1 ' .. sixteen(number) .. ' ' .. now_text .. ' ' ..
                asking, 'PX', time)
            record.dirty = true
            run(record, 'ZADD', queue, format('%.0f', number), holder)
            rank = run(record, 'ZRANK', queue, holder)
        end
        -- Both outlive the tickets.
        call('PEXPIRE', queue, '3600000')
        local ends = end_of(record)
        if ends ~= -1 then
            call('PEXPIREAT', record.rest, milliseconds(ends))
        end
        answer[7] = 1
        answer[8] = number
        answer[9] = rank + 1
        return answer
    end

    -- Its ticket, if it has one, is of no use any more. Whoever comes next must hear of it.
    local function leave_queue(record, holder)
        local first = head(record)
        if not record.queued or run(record, 'ZREM', record.rest .. 'q', holder) == 0 then
            return
        end
        call('DEL', record.rest .. 't' .. holder)
        local room = not record.live or (record.shares and record.taken < record.capacity)
        if first == holder and room and not blocked(record) then
            wake(record)
        elseif first == holder then
            head(record)
        end
        if not record.queued then
            write(record)
        end
    end

    -- Attached or not, and whether the rest is short.
    local function letter_of(record, attached)
        local long = readable(record) or blocked(record) or record.queued
        return long and attached or string.upper(attached)
    end

    local function lock_text(holder, first, last, granted, tail)
        return 'dibs1 ' .. holder .. ' ' .. sixteen(first) .. ' ' .. sixteen(last) .. ' ' ..
            granted .. ' ' .. tail
    end

    local function acquire(lock, rest, holder, not_after, asked, mark)
        local record = read(lock, rest)
        local expires = ceil((now + asked.ttl) / 1000) * 1000
        if now > tonumber(not_after) then
            return with_result({'l', 0, 0, 0}, record)
        end
        if record.live and record.holder == holder then
            run(record, 'PEXPIREAT', lock, last_millisecond(expires))
            record.last_holder = holder
            record.last_expiry = expires
            record.ended = false
            if not record.untraced then
                write_if_room(record)
            end
            return with_result({'g', record.first, record.last, expires}, record)
        end
        local mine, is_live = share_of(record, holder)
        if is_live then
            mine.expires = expires
            write_shares(record)
            if record.last_holder == holder then
                record.last_expiry = expires
                write_if_room(record)
            end
            return with_result({'g', mine.first, mine.last, expires}, record)
        end
        local taken, agreed = 0, asked.capacity
        if record.live then
            taken = record.shares and record.taken or 1
            agreed = record.shares and record.capacity or 1
        end
        local capacity = math.min(agreed, asked.capacity)
        if agreed ~= asked.capacity and capacity ~= 1 then
            return with_result({'c', agreed, 0, 0}, record)
        end
        if blocked(record) then
            return in_queue(with_result({'b', record.reason, record.blocked, 0}, record), record,
                            holder, asked.queue)
        end
        if taken + asked.weight > capacity then
            local answer = holder_answer('h', record)
            answer[7] = record.queued and 0 or waiters(record)
            if asked.notify and leave_word(record) then
                answer[8], answer[9], answer[10] = 0, 0, 1
            end
            return in_queue(answer, record, holder, asked.queue)
        end
        if readable(record) and (record.fresh_until == -1 or now < record.fresh_until) and
            record.result_fence > asked.seen then
            leave_queue(record, holder)
            return with_result({'d', 0, 0, 0}, record)
        end
        local first_in_queue, first_ticket = head(record)
        if first_in_queue and first_in_queue ~= holder then
            -- Whoever finds a free key reminds its head, which may have missed its wake-up. But not
            -- its own process: where nobody is behind that ticket any more, it would come back here
            -- at once, again and again.
            if process_of(first_ticket) ~= match(asking, '^%S+') then
                wake(record)
            end
            local left = run(record, 'PTTL', record.rest .. 't' .. first_in_queue)
            local others = record.live and record.raw
            return in_queue(with_result({'h', others, now + math.max(left, 0) * 1000, 0}, record),
                            record, holder, asked.queue)
        end
        if now < ready then
            return in_queue(with_result({'w', 0, ready, 0}, record), record, holder,
                            asked.queue)
        end

        need_room()
        if first_in_queue then
            record.queued = run(record, 'ZCARD', record.rest .. 'q') > 1
        end
        local _, unknown = known_mark()
        if unknown then
            refuse({'e', unknown, 0})
        end
        local first, last = next_fences(record.fence, asked.floor, asked.fences)
        local unmarked = raise_mark(last)
        if unmarked then
            refuse({'e', unmarked, 0})
        end
        local found = with_result({'g', first, last, expires}, record)
        local result, meta, keep_until = record.result, record.meta, record.keep_until
        record.fence = last
        record.last_holder = holder
        record.last_expiry = expires
        record.ended = false
        if mark then
            take_result(record, last, 1, mark, asked.fresh, asked.keep)
        end
        must_write(record, mark)
        local text, ends = nil, expires
        if asked.capacity == 1 then
            local tail = letter_of(record, asked.attached) .. ' ' .. asking
            text = lock_text(holder, first, last, now_text, tail)
        else
            local others = record.live and record.shares or {}
            record.shares, record.capacity = {}, asked.capacity
            for at = 1, #others do
                if now < others[at].expires then
                    record.shares[#record.shares + 1] = others[at]
                end
            end
            record.shares[#record.shares + 1] =
                {weight = asked.weight, expires = expires, holder = holder, first = first,
                 last = last, tail = tail_of_share(now_text, asked.attached)}
            text, ends = text_of_shares(record)
        end
        local given = call('SET', lock, text, 'PXAT', last_millisecond(ends))
        if words_of(given) then
            record.last_holder = nil
            record.last_expiry = 0
            record.queued = record.queued or first_in_queue ~= nil
            record.result, record.meta, record.keep_until = result, meta, keep_until
            if not record.kept then
                call('DEL', rest)
            else
                write(record, true)
            end
            refuse({'e', named(given.err, 'SET'), 0})
        end
        if first_in_queue then
            call('ZREM', rest .. 'q', holder)
            call('DEL', rest .. 't' .. holder)
            -- A release wakes one; where several fit in, each lets the next one know.
            if record.queued and taken + asked.weight < asked.capacity then
                wake(record)
            end
        end
        return found
    end

    function verbs.A(lock, rest, holder, not_after, words)
        local attached, ttl, fences = match(words, '^([ADUV]) (%d+) %d+ %d+ (%d+)$')
        return acquire(lock, rest, holder, not_after,
                       {ttl = tonumber(ttl), fences = tonumber(fences), floor = 0, weight = 1,
                        capacity = 1, attached = match(attached, '[AU]') and 'a' or 'd', seen = 0,
                        queue = 0})
    end
    verbs.D, verbs.U, verbs.V = verbs.A, verbs.A, verbs.A

    function verbs.a(lock, rest, holder, not_after, words)
        local ttl, fences, floor, weight, capacity, attached, seen, mark, fresh, keep, queue, notify =
            match(words, '^a (%d+) (%d+) (%d+) (%d+) (%d+) ([ad]) (%d+) ([01]) (%-?%d+) ' ..
                '(%-?%d+) (%d+) ([01])$')
        return acquire(lock, rest, holder, not_after,
                       {ttl = tonumber(ttl), fences = tonumber(fences), floor = tonumber(floor),
                        weight = tonumber(weight), capacity = tonumber(capacity), attached = attached, seen = tonumber(seen),
                        fresh = tonumber(fresh), keep = tonumber(keep), queue = tonumber(queue),
                        notify = notify == '1'},
                       mark == '1' and payload())
    end

    -- A live grant of this holder is not there: what became of it?
    local function not_held(holder, record)
        local loss = 'gone'
        local trace = share_of(record, holder)
        if trace then
            loss = trace.expires == 0 and 'revoked' or 'expired'
        elseif record.live then
            loss = 'taken'
        elseif record.last_holder == holder then
            loss = record.ended and 'revoked' or (now >= record.last_expiry and 'expired' or 'gone')
        elseif record.last_holder then
            loss = 'taken'
        end
        return with_result({'x', loss, 0, 0}, record)
    end

    -- Somebody else may have adopted it, and the server forgotten that.
    local function not_yet(record)
        return with_result({'w', 0, ready, 0}, record)
    end

    local function renew_share(record, mine, ttl, fences, new_holder, attached)
        local expires = ceil((now + ttl) / 1000) * 1000
        local holder, stored = mine.holder, record.fence
        local was_last = record.last_holder == holder
        if new_holder and new_holder ~= holder then
            local _, is_live, at = share_of(record, new_holder)
            if is_live then
                refuse({'e', 'the holder id to adopt the lease holds the key', 0})
            elseif now < ready then
                return not_yet(record)
            elseif at then
                table.remove(record.shares, at)
            end
        end
        if was_last then
            record.last_holder, record.last_expiry, record.ended = new_holder or holder, expires,
                false
        end
        if fences > 0 and not full and known_mark() then
            local first, last = next_fences(stored, 0, fences)
            record.fence = last
            if raise_mark(last) or write(record) then
                record.fence = stored
            else
                mine.first, mine.last = first, last
            end
        end
        mine.expires = expires
        if new_holder then
            mine.holder = new_holder
            mine.tail = tail_of_share(match(mine.tail, '^%d+'), attached)
        end
        write_shares(record)
        if was_last then
            write_if_room(record)
        end
        local renewed = with_result({'n', mine.first, mine.last, expires}, record)
        renewed[7] = waiters(record)
        return renewed
    end

    local function renew(lock, rest, holder, ttl, fences, new_holder, attached)
        local record = read(lock, rest)
        local share, is_live = share_of(record, holder)
        if is_live then
            return renew_share(record, share, ttl, fences, new_holder, attached)
        end
        if not record.live or record.holder ~= holder then
            return not_held(holder, record)
        end
        if new_holder and new_holder ~= holder and now < ready then
            return not_yet(record)
        end
        local expires = ceil((now + ttl) / 1000) * 1000
        local first, last = record.first, record.last
        record.last_holder = new_holder or holder
        record.last_expiry = expires
        record.ended = false
        -- Where this fails, and on a full server, the lease keeps the fences it has.
        if fences > 0 and not full and known_mark() then
            local stored = record.fence
            local higher_first, higher_last = next_fences(stored, 0, fences)
            record.fence = higher_last
            if raise_mark(higher_last) or (not record.untraced and write(record)) then
                record.fence = stored
            else
                first, last = higher_first, higher_last
            end
        end
        local until_when = last_millisecond(expires)
        local ttl_ms = format('%.0f', ceil(ttl / 1000))
        if new_holder or first ~= record.first or last ~= record.last or
            (record.untraced and record.ttl_ms ~= ttl_ms) then
            local granted, letter, who = match(record.raw, '^dibs1 %S+ %S+ %S+ (%d+) (%S+) (.*)$')
            if record.untraced then
                letter = sub(letter, 1, 1)
                if new_holder then
                    letter = attached == 'a' and 'U' or 'V'
                end
                letter = letter .. ttl_ms
            elseif new_holder then
                letter = letter_of(record, attached)
            end
            local tail = letter .. ' ' .. (new_holder and asking or who)
            local text = lock_text(record.last_holder, first, last, granted, tail)
            local set = call('SET', lock, text .. (record.left_word or ''), 'PXAT', until_when)
            if words_of(set) then
                if new_holder then
                    refuse({'e', named(set.err, 'SET'), 0})
                end
                first, last = record.first, record.last
                run(record, 'PEXPIREAT', lock, until_when)
            end
        else
            run(record, 'PEXPIREAT', lock, until_when)
        end
        if not record.untraced then
            write_if_room(record)
        end
        local renewed = with_result({'n', first, last, expires}, record)
        renewed[7] = waiters(record)
        return renewed
    end

    function verbs.N(lock, rest, holder, not_after, words)
        return renew(lock, rest, holder, tonumber(match(words, '^N (%d+)')), 0)
    end

    function verbs.n(lock, rest, holder, not_after, words)
        local ttl, fences, new_holder, attached = match(words, '^n (%d+) (%d+) (%S+) ([ad])$')
        return renew(lock, rest, holder, tonumber(ttl), tonumber(fences),
                     new_holder ~= '-' and new_holder or nil, attached)
    end

    local function release(lock, rest, holder, late, result, fresh, keep)
        local record = read(lock, rest)
        local share, is_live, place = share_of(record, holder)
        local mine = is_live or (record.live and record.holder == holder)
        local in_time = mine
        if not mine and late and (record.shares or not record.live) then
            mine = record.last_holder == holder and not record.ended
        end
        if not mine then
            leave_queue(record, holder)
            return not_held(holder, record)
        end
        if result then
            need_room()
            take_result(record, share and share.last or in_time and record.last or record.fence, 0,
                        result, fresh, keep)
            if not share or record.last_holder == holder then
                record.last_holder = nil
                record.last_expiry = 0
            end
            must_write(record, true)
            record.dirty = true
        end
        if share then
            table.remove(record.shares, place)
            write_shares(record)
        elseif record.raw and not record.shares then
            run(record, 'DEL', lock)
        end
        if not result and not record.untraced and (not share or record.last_holder == holder) then
            forget_holder(record)
        end
        local ended = with_result({result and 'f' or 'r', 0, 0, 0}, record)
        ended[7] = (result and publish or wake)(record) + notify(record)
        return ended
    end

    function verbs.R(lock, rest, holder)
        return release(lock, rest, holder)
    end

    function verbs.r(lock, rest, holder, not_after, words)
        local has_result, late, fresh, keep =
            match(words, '^r ([01]) ([01]) (%-?%d+) (%-?%d+)$')
        local result = has_result == '1' and payload()
        return release(lock, rest, holder, result and late == '1', result, tonumber(fresh),
                       tonumber(keep))
    end

    function verbs.v(lock, rest, holder, not_after, words)
        local fence = tonumber(sub(words, 3))
        local record = read(lock, rest)
        for at = 1, record.shares and #record.shares or 0 do
            local one = record.shares[at]
            if now < one.expires and fence >= one.first and fence <= one.last then
                if record.last_holder == one.holder then
                    record.ended = true
                    write_if_room(record)
                end
                one.expires = 0
                write_shares(record)
                wake(record)
                return {'v'}
            end
        end
        if not record.live or not record.holder or fence < record.first or fence > record.last then
            return holder_answer('m', record)
        end
        record.last_holder = record.holder
        record.ended = true
        write_if_room(record)
        run(record, 'DEL', lock)
        record.live = false
        wake(record)
        notify(record)
        return {'v'}
    end

    function verbs.b(lock, rest, holder, not_after, words)
        local duration, reason = tonumber(sub(words, 3)), payload()
        local record = read(lock, rest)
        local was_blocked = blocked(record)
        record.blocked = duration == 0 and 0 or later(duration)
        record.reason = duration == 0 and '' or reason
        if duration ~= 0 then
            need_room()
            take_capital(record)
            must_write(record, true)
        elseif was_blocked then
            local fault = write(record, true)
            -- A full server forgets what else it knew rather than that the hold is lifted.
            if fault and (readable(record) or words_of(call('DEL', rest))) then
                refuse({'e', fault, 0})
            end
            wake(record)
        end
        return {'s'}
    end

    function verbs.q(lock, rest)
        local record = read(lock, rest)
        local shown = holder_answer('q', record)
        shown[7] = waiters(record)
        shown[8] = record.fence
        shown[9] = record.blocked
        shown[10] = record.reason
        shown[11], shown[12] = 0, ''
        local all = record.queued and run(nil, 'ZRANGE', rest .. 'q', 0, -1) or {}
        for at = 1, #all do
            local ticket = run(nil, 'GET', rest .. 't' .. all[at])
            if ticket then
                shown[11] = shown[11] + 1
                if shown[11] <= 100 then
                    shown[12] = shown[12] .. string.gsub(ticket, '\30', '?') .. '\30'
                end
            end
        end
        return shown
    end

    return verbs
end

-- The short way. What entries with the same words have in common is found out and done once for
-- all of them.
local answers = {now}
local in_time = now_text <= sub(ends, 1, 16)

local function end_of_entry(at)
    local own = sub(ends, 16 * at + 1, 16 * at + 16)
    return #own == 16 and byte(own) ~= 32 and own or sub(ends, 1, 16)
end

-- What all entries are told so far is a release that nobody listens to, or the next fence.
local usual, first_fence, next_fence = true, nil, nil
-- Runs of releases and of renewals: from and to which entry, and how many were left.
local ended = {}
local verbs
local from, place, line_end, count = 1, 1, nil, nil

while from <= entries do
    local words, to = argv[1], entries
    if find(words, '\n', 1, true) then
        place, line_end, count, words = find(words, '^(%d+) ([^\n]*)\n', place)
        place, to = line_end + 1, from + count - 1
    end
    local verb = sub(words, 1, 1)

    -- A refused command is a table here, which holds nothing and equals nothing that is asked for.
    if verb == 'R' then
        local held = call('MGET', unpack(keys, from, to))
        local untraced, left = 0, 0
        for at = from, to do
            local value = held[at - from + 1]
            local letter = value and #value > 91 and find(value, argv[1 + at], 1, true) == 1 and
                not find(value, '\30', 92, true) and byte(value, 91)
            if letter == 85 or letter == 86 then
                untraced = untraced + 1
                answers[at + 1] = 0
            elseif letter and letter < 85 and sub(value, 57, 72) <= now_text and
                call('DEL', keys[at]) == 1 then
                local rest = keys[entries + at]
                if call('PEXPIRE', rest, '3599000') ~= 1 then
                    local text = 'dibs1 ' .. nobody .. sub(value, 56, 72) .. ' 0000000000000000 0'
                    call('SET', rest, text, 'PX', '3600000')
                end
                answers[at + 1] = 1
            else
                left = left + 1
            end
        end
        local gone = 0
        if untraced == to - from + 1 then
            gone = call('DEL', unpack(keys, from, to))
        elseif untraced > 0 then
            local locks = {}
            for at = from, to do
                if answers[at + 1] == 0 then
                    locks[#locks + 1] = keys[at]
                end
            end
            gone = call('DEL', unpack(locks))
        end
        if gone ~= untraced then
            -- Refused, or twice in the batch. Whoever comes second holds nothing any more.
            local before = {}
            for at = from, to do
                if answers[at + 1] == 0 then
                    if before[keys[at]] or type(gone) == 'table' then
                        answers[at + 1] = nil
                        left = left + 1
                    end
                    before[keys[at]] = true
                end
            end
        end
        usual = usual and left == 0
        ended[#ended + 1] = {from, to, left, false, held}

    elseif verb == 'N' then
        local held, left = call('MGET', unpack(keys, from, to)), 0
        local ttl, ttl_ms, rest_ttl = match(words, ' (%d+) (%d+) (%d+)$')
        local expires = format('%.0f', ceil((now + ttl) / 1000) - 1)
        local expiry = ' ' .. sixteen(expires * 1000) .. ' 0'
        ttl_ms = ttl_ms .. ' '
        for at = from, to do
            local value, head = held[at - from + 1], argv[1 + at]
            local letter = value and #value > 91 and find(value, head, 1, true) == 1 and
                not find(value, '\30', 92, true) and byte(value, 91)
            local traced = letter and letter < 85
            if letter and letter < 97 and sub(value, 57, 72) <= now_text and
                (traced or find(value, ttl_ms, 92, true) == 92) and
                call('PEXPIREAT', keys[at], expires) == 1 then
                local rest = keys[entries + at]
                if traced and call('SET', rest, head .. sub(value, 56, 72) .. expiry, 'PX',
                                   rest_ttl).err then
                    call('PEXPIRE', rest, rest_ttl)
                end
                answers[at + 1] = sub(value, 39, 72)
            else
                left = left + 1
            end
        end
        usual = false
        ended[#ended + 1] = {from, to, left, true}

    elseif byte(verb) < 87 and not full and now >= ready then
        local untraced = verb == 'U' or verb == 'V'
        -- Nothing is there, neither locks nor rests.
        local bare = untraced and call('EXISTS', unpack(keys, from, to)) == 0 and
            call('EXISTS', unpack(keys, entries + from, entries + to)) == 0
        local ttl, ttl_ms, rest_ttl, fences, expires, expiry, bare_tail, tail
        local first, each, hundred, high
        local granted = 0
        for at = from, to do
            local lock, head = keys[at], argv[1 + at]
            if (in_time or now_text <= end_of_entry(at)) and
                (bare or call('GET', lock) == false) then
                if not ttl then
                    ttl, ttl_ms, rest_ttl, fences = match(words, ' (%d+) (%d+) (%d+) (%d+)$')
                    expires = format('%.0f', ceil((now + ttl) / 1000) - 1)
                    bare_tail = ' ' .. now_text .. ' ' .. verb .. ttl_ms .. ' ' .. asking
                    -- The fences of all of them, behind the clock if there is room.
                    if not mark then
                        local kept = call('GET', mark_key)
                        if kept == false then
                            mark = 0
                        elseif #kept == 22 and sub(kept, 1, 6) == 'dibs1 ' then
                            mark = tonumber(sub(kept, 7))
                        end
                    end
                    local wanted = to - from + 1
                    first = mark and math.max(mark + 1, now - wanted * fences + 1) or fence_limit
                    each = math.max(floor((now - first + 1) / wanted), 1)
                    local last = first + wanted * each - 1
                    if last >= fence_limit or
                        call('SET', mark_key,
                             'dibs1 ' .. (last == now and now_text or sixteen(last))).err then
                        break
                    end
                    mark = last
                end
                local fence = first + (at - from) * each
                -- By hand, as above.
                if not hundred or fence - hundred > 99 then
                    hundred = fence - fence % 100
                    high = sub(sixteen(fence), 1, 14)
                end
                local ones = fence % 10
                local text = high .. char(48 + (fence - hundred - ones) / 10, 48 + ones)
                local last_text = each == 1 and text or sixteen(fence + each - 1)
                local kept = not bare and call('GET', keys[entries + at])
                local done
                if not kept and untraced then
                    done = call('SET', lock, head .. ' ' .. text .. ' ' .. last_text .. bare_tail,
                                'NX', 'PXAT', expires)
                elseif not kept or (#kept == short and sub(kept, 1, 6) == 'dibs1 ' and
                                    sub(kept, 40, 55) < text) then
                    expiry = expiry or ' ' .. sixteen(expires * 1000) .. ' 0'
                    tail = tail or ' ' .. now_text .. ' ' ..
                        ((verb == 'A' or verb == 'U') and 'A' or 'D') .. ' ' .. asking
                    done = call('SET', keys[entries + at], head .. ' ' .. last_text .. expiry, 'PX',
                                rest_ttl)
                    done = done.ok and
                        call('SET', lock, head .. ' ' .. text .. ' ' .. last_text .. tail, 'PXAT',
                             expires)
                end
                if done and done.ok then
                    granted = granted + 1
                    answers[at + 1] = each == 1 and fence or text .. ' ' .. last_text
                end
            end
        end
        usual = usual and granted == to - from + 1 and each == 1 and
            (not next_fence or first == next_fence)
        first_fence = first_fence or first
        next_fence = first and first + granted
    else
        usual = false
    end

    for at = from, to do
        if not answers[at + 1] then
            if not verbs then
                local refused = entries == 1 and refusal()
                if refused then
                    return refused
                end
                verbs = all_verbs()
            end
            local done, answer = pcall(verbs[verb], keys[at], keys[entries + at],
                                       sub(argv[1 + at], 7), end_of_entry(at), words)
            if not done then
                answer = type(answer) == 'table' and answer.entry or
                    {'e', 'the script failed: ' ..
                         tostring(type(answer) == 'table' and answer.err or answer), 1}
            end
            answers[at + 1] = answer
        end
    end
    from = to + 1
end

-- Who listens to what was given back or prolonged.
for one = 1, #ended do
    local from, to, left, renewed, held = unpack(ended[one], 1, 5)
    local places, heard
    if left == 0 and (renewed or from < to) then
        heard = call('PUBSUB', 'NUMSUB', unpack(keys, entries + from, entries + to))
    elseif left == 0 then
        -- For one it is as well to tell them at once.
        heard = {0, 1}
    elseif left <= to - from then
        places = {}
        local channels = {}
        for at = from, to do
            if type(answers[at + 1]) ~= 'table' then
                places[#places + 1] = at
                channels[#channels + 1] = keys[entries + at]
            end
        end
        heard = call('PUBSUB', 'NUMSUB', unpack(channels))
    end
    for place = 1, to - from + 1 - left do
        local at = places and places[place] or from + place - 1
        local count = heard[2 * place] or 0
        if renewed then
            answers[at + 1] = (count == 0 and '0' or count) .. answers[at + 1]
        elseif count ~= 0 or heard.err then
            count = call('PUBLISH', keys[entries + at], process_asking(held[at - from + 1]))
            answers[at + 1] = type(count) == 'number' and count or 0
            usual = usual and answers[at + 1] == 0
        else
            answers[at + 1] = 0
        end
    end
end
if usual and next_fence and next_fence - 1 ~= now then
    return now_text .. ' ' .. sixteen(first_fence)
end
return usual and now_text or answers
