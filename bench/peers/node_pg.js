// SPDX-License-Identifier: Apache-2.0
// 64 callers of one process, each with a key of its own, by the wrapper that one finds in articles: an
// advisory lock of a transaction, on a connection of a pool of npm pg, and nothing done under it. Cycles
// of lock and commit, with the pool's default of 10 connections and with one for each caller.
// usage: node_pg.js URL SECONDS
'use strict';

const {Pool} = require('pg');

const [url, seconds] = [process.argv[2], Number(process.argv[3])];
const callers = 64;

async function withAdvisoryLock(pool, lockKey, work) {
    const client = await pool.connect();
    try {
        await client.query('BEGIN');
        const {rows} = await client.query(
            'SELECT pg_try_advisory_xact_lock(hashtext($1)) AS acquired', [lockKey]);
        if (!rows[0].acquired) {
            await client.query('ROLLBACK');
            return null;
        }
        const result = await work();
        await client.query('COMMIT');
        return result;
    } catch (error) {
        await client.query('ROLLBACK');
        throw error;
    } finally {
        client.release();
    }
}

async function measure(connections) {
    const pool = new Pool({connectionString: url, max: connections});
    await Promise.all(Array.from({length: connections}, () => pool.query('SELECT 1')));
    const start = Date.now();
    const until = start + 1000 * seconds;
    let cycles = 0;
    await Promise.all(Array.from({length: callers}, async (_, number) => {
        while (Date.now() < until) {
            if (await withAdvisoryLock(pool, `wrapper-${number}`, async () => true)) {
                ++cycles;
            }
        }
    }));
    console.log(`64 callers by npm pg, ${connections} connections ` +
                `${(1000 * cycles / (Date.now() - start)).toFixed(0)} cycles/s`);
    await pool.end();
}

async function main() {
    await measure(10);
    await measure(callers);
}

main();
