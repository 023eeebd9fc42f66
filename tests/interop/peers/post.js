// SPDX-License-Identifier: Apache-2.0
// Posts what each line of stdin says, {"key": …, "body": …}, four times at once, and prints the answers as a line.
// usage: post.js URL
'use strict';

const readline = require('readline');

const url = process.argv[2];

async function post(key, body) {
    const headers = key ? {'Idempotency-Key': key} : {};
    const answer = await fetch(url, {method: 'POST', headers, body});
    return {status: answer.status, text: await answer.text()};
}

readline.createInterface({input: process.stdin}).on('line', async line => {
    const {key, body} = JSON.parse(line);
    const answers = await Promise.all([1, 2, 3, 4].map(() => post(key, body)));
    process.stdout.write(JSON.stringify({answers}) + '\n');
});
process.stdout.write('ready\n');
