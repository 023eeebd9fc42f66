// SPDX-License-Identifier: Apache-2.0
// A process that locks as others do, and does as it is told on stdin (see peer_process.hpp).
// usage: peer.js KIND PORT KEY
'use strict';

const fs = require('fs');
const readline = require('readline');

const [kind, port, key] = process.argv.slice(2);

const tell = text => process.stdout.write(text + '\n');
const pause = ms => new Promise(done => setTimeout(done, ms));

// A count without atomic steps, and a file that only one may have.
async function work(folder) {
    let alone = true;
    try {
        fs.writeFileSync(`${folder}/inside`, kind, {flag: 'wx'});
    } catch {
        alone = false;
        fs.appendFileSync(`${folder}/overlaps`, `${kind} beside another\n`);
    }
    const count = Number(fs.readFileSync(`${folder}/count`, 'utf8'));
    await pause(1);
    fs.writeFileSync(`${folder}/count`, String(count + 1));
    if (alone) fs.unlinkSync(`${folder}/inside`);
}

async function contend(lock, rounds, ttl, folder) {
    for (let round = 0; round < rounds; ++round) {
        while (!await lock.acquire(ttl)) await pause(5);
        await work(folder);
        if (!await lock.release()) return 'lost';
        await pause(5);
    }
    return 'done';
}

async function obey(lock, words) {
    switch (words[0]) {
        case 'acquire': return await lock.acquire(Number(words[1])) ? 'granted' : 'held';
        case 'renew': return await lock.renew(Number(words[1])) ? 'renewed' : 'not_held';
        case 'release': return await lock.release() ? 'released' : 'not_held';
        case 'contend': return contend(lock, Number(words[1]), Number(words[2]), words[3]);
        default: throw new Error(`what is ${words[0]}?`);
    }
}

async function main() {
    let make;
    try {
        make = require('./locks.js')[kind];
        ['ioredis', 'redis', 'redlock4', 'redlock5'].forEach(name => require.resolve(name));
    } catch (error) {
        tell(`missing ${error.message.split('\n')[0]}`);
        return;
    }
    const lock = await make(Number(port), key);
    tell('ready');
    for await (const line of readline.createInterface({input: process.stdin})) {
        tell(await obey(lock, line.split(' ')).catch(error => `error ${error.message}`));
    }
    await lock.close();
}

main().catch(error => {
    tell(`error ${error.message}`);
    process.exit(1);
});
