// SPDX-License-Identifier: Apache-2.0
// What `dibs token get` runs: redeems the refresh token on stdin, or the first one, and prints the provider's answer.
// usage: fetch_token.js PORT FIRST_REFRESH_TOKEN
'use strict';

const fs = require('fs');

const [port, first] = process.argv.slice(2);
const given = fs.readFileSync(0, 'utf8').trim();

fetch(`http://127.0.0.1:${port}/token`, {
    method: 'POST',
    body: new URLSearchParams({
        client_id: 'crm',
        client_secret: 'secret',
        grant_type: 'refresh_token',
        refresh_token: given || first,
    }),
}).then(answer => answer.text()).then(text => process.stdout.write(text + '\n'));
