// SPDX-License-Identifier: Apache-2.0
// 64 callers of one process, each with a key of its own, by npm redlock 5 on ioredis: cycles of
// acquire and release.
// usage: redlock.js PORT SECONDS
'use strict';

const {default: Redlock} = require('redlock5');
const Redis = require('ioredis');

const [port, seconds] = process.argv.slice(2).map(Number);
const client = new Redis({port, host: '127.0.0.1'});
const lock = new Redlock([client], {retryCount: 0});

let cycles = 0;
let until = 0;

async function caller(number) {
    for (; Date.now() < until; ++cycles) {
        const held = await lock.acquire([`redlock-${number}`], 30000);
        await held.release();
    }
}

async function main() {
    await client.ping();
    const start = Date.now();
    until = start + 1000 * seconds;
    await Promise.all(Array.from({length: 64}, (_, number) => caller(number)));
    console.log(`64 callers by npm redlock 5 ${(1000 * cycles / (Date.now() - start)).toFixed(0)} cycles/s`);
    client.disconnect();
}

main();
