// SPDX-License-Identifier: Apache-2.0
// A payment that may be posted twice is made once: the work is a command under `dibs idempotent`, which keeps its first
// answer. Any number of these servers, on any hosts that share the store.
//
//   npm install express
//   DIBS_STORE=redis://localhost:6379 node express.js [PORT]
//   curl -H 'Idempotency-Key: order-4711' -d '{"amount": 5}' localhost:3000/payments
'use strict';

const {createHash} = require('crypto');
const {execFile} = require('child_process');
const path = require('path');
const express = require('express');

const dibs = process.env.DIBS || 'dibs';

// What dibs tells by its exit status, for HTTP (draft-ietf-httpapi-idempotency-key-header).
const statuses = {0: 200, 64: 400, 65: 422, 69: 503, 75: 409, 77: 500};

const app = express();
app.post('/payments', express.text({type: '*/*'}), (request, response) => {
    const key = request.get('Idempotency-Key');
    if (!key) {
        response.status(400).send('Idempotency-Key is missing\n');
        return;
    }
    const body = request.body ?? '';  // none at all
    // A digest: what stands on a command line can be seen by everybody on the machine.
    const fingerprint = createHash('sha256').update(body).digest('hex');
    const command = [process.execPath, path.join(__dirname, 'charge.js')];
    const work = execFile(
        dibs,
        ['idempotent', `payments/${key}`, '--fingerprint', fingerprint, '--wait', '10s', '--', ...command],
        (error, answer, trouble) => {
            if (trouble) process.stderr.write(trouble);
            const status = error ? statuses[error.code] || 502 : 200;
            response.status(status).send(error ? trouble : answer);
        });
    work.stdin.on('error', () => {});  // a command that is not run reads nothing
    work.stdin.end(body);
});

const server = app.listen(Number(process.argv[2] || 3000), '127.0.0.1', () => {
    console.log(`listening on ${server.address().port}`);
});
