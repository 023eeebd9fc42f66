// SPDX-License-Identifier: Apache-2.0
// The work of express.js: asks a payment service, which is told the key, too, and answers on stdout. Status 0 is an
// answer that is kept; any other one lets the next request try again.
'use strict';

const fs = require('fs');

const request = JSON.parse(fs.readFileSync(0, 'utf8'));
// Here, a line in a file stands for the payment service.
if (process.env.CHARGES) {
    fs.appendFileSync(process.env.CHARGES, `${process.env.DIBS_IDEMPOTENCY_KEY} ${request.amount}\n`);
}
console.log(JSON.stringify({paid: request.amount, fence: process.env.DIBS_FENCE}));
