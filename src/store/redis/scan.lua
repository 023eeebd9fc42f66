-- SPDX-License-Identifier: Apache-2.0
-- One step of a walk over the key space of the database: names of locks of ours, and of what lies
-- beside them.
--
-- ARGV  the cursor, the pattern of SCAN, the prefix of the locks, how many keys to look at
-- Returns the next cursor, then the names.

local page = redis.pcall('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[4], 'TYPE', 'string')
if page.err then
    return redis.error_reply(page.err .. ' (scan)')
end
local prefix = ARGV[3]
local found = {page[1]}
for _, name in ipairs(page[2]) do
    if string.find(name, ':~dibs', 1, true) then
        found[#found + 1] = name
    elseif string.sub(name, 1, #prefix) == prefix then
        -- Of a lock the beginning says whose it is: what others keep there may be large.
        local text = redis.pcall('GETRANGE', name, 0, 5)
        if text == 'dibs1 ' then
            found[#found + 1] = name
        elseif type(text) == 'table' and not string.find(text.err, 'keys', 1, true) then
            return redis.error_reply(text.err .. ' (getrange)')
        end
    end
end
return found
