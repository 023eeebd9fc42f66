// SPDX-License-Identifier: Apache-2.0
// A job of node-cron that several servers plan and one runs: its run coordinator asks dibs. Each time of the plan is a slot
// of the job, so a server that is late, or whose clock is behind, finds it done.
//
//   npm install node-cron
//   DIBS_STORE=redis://localhost:6379 node cron.js [EXPRESSION]
//
// This decides who runs, and forgets whoever dies while running. Where the run must be made up for then, let dibs run the
// job itself: `dibs once nightly --slot … --wait 1h -- node job.js`.
'use strict';

const {execFile} = require('child_process');
const cron = require('node-cron');

const dibs = process.env.DIBS || 'dibs';

// `key` is the job's name and the time, such as `nightly:2026-11-30T03:00:00.000Z`. Who gets the slot runs `echo`.
function shouldRun(key) {
    const [job, ...time] = key.split(':');
    const words = ['once', job, '--slot', time.join(':'), '--keep', '1d', '--', 'echo', 'mine'];
    return new Promise((resolve, reject) => {
        execFile(dibs, words, (error, said, trouble) => {
            // 0 with nothing said: somebody else has it.
            if (error) reject(new Error(trouble || error.message));
            else resolve(said === 'mine\n');
        });
    });
}

cron.schedule(process.argv[2] || '0 3 * * *', async context => {
    console.log(`run ${context.date.toISOString()}`);
}, {name: 'nightly', distributed: true, runCoordinator: {shouldRun}, timezone: 'UTC'});
console.log('planned');
