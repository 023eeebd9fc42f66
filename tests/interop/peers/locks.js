// SPDX-License-Identifier: Apache-2.0
// How programs of others lock one key of one server, each behind the same three calls:
// acquire(ttl) tells whether it has the key, renew(ttl) and release() tell whether it had it still.
'use strict';

const crypto = require('crypto');

const compareAndDelete =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) " +
    'else return 0 end';

async function overIoredis(port) {
    const Redis = require('ioredis');
    const client = new Redis({host: '127.0.0.1', port, lazyConnect: true});
    await client.connect();
    return client;
}

async function redlock4(port, key) {
    const Redlock = require('redlock4');
    const client = await overIoredis(port);
    const redlock = new Redlock([client], {retryCount: 0});
    redlock.on('clientError', () => {});
    let lock = null;
    const whether = promise => promise.then(() => true, error => {
        if (error.name !== 'LockError') throw error;
        return false;
    });
    return {
        acquire: ttl => whether(redlock.lock(key, ttl).then(got => { lock = got; })),
        renew: ttl => whether(lock.extend(ttl).then(got => { lock = got; })),
        release: () => whether(lock.unlock()),
        close: () => client.quit(),
    };
}

async function redlock5(port, key) {
    const {default: Redlock, ExecutionError, ResourceLockedError} = require('redlock5');
    const client = await overIoredis(port);
    // Clocks of one host do not drift apart, and a ttl of some 100 ms is to be used up.
    const redlock = new Redlock([client], {retryCount: 0, automaticExtensionThreshold: 50});
    redlock.on('error', () => {});
    let lock = null;
    const whether = promise => promise.then(() => true, error => {
        if (!(error instanceof ExecutionError || error instanceof ResourceLockedError)) throw error;
        return false;
    });
    return {
        acquire: ttl => whether(redlock.acquire([key], ttl).then(got => { lock = got; })),
        renew: ttl => whether(lock.extend(ttl).then(got => { lock = got; })),
        release: () => whether(lock.release()),
        close: () => client.quit(),
    };
}

// A job that skips when the lock is taken: one SET with a value of its own and a ttl, given back by
// a script that compares. Sound as far as it goes. Its weak points: nobody prolongs the lock, so
// work that overruns the ttl goes on beside the next holder; what the script answers is thrown away,
// so nobody learns that the lock was lost; the fence that belongs to it is an INCR after the SET, so
// that a slow holder can draw the larger one.
async function skippingJob(port, key) {
    const client = await overIoredis(port);
    let token = '';
    return {
        acquire: async ttl => {
            token = crypto.randomUUID();
            return await client.set(key, token, 'PX', ttl, 'NX') === 'OK';
        },
        renew: async () => { throw new Error('it does not renew'); },
        release: async () => await client.eval(compareAndDelete, 1, key, token) === 1,
        close: () => client.quit(),
    };
}

// The same job before it compares. Its mistake: after an overrun the DEL takes away the lock of
// whoever came next.
async function blindRelease(port, key) {
    const client = await overIoredis(port);
    return {
        acquire: async ttl => await client.set(key, '1', 'PX', ttl, 'NX') === 'OK',
        renew: async () => { throw new Error('it does not renew'); },
        release: async () => await client.del(key) === 1,
        close: () => client.quit(),
    };
}

// A job with a watchdog. Its mistake: the watchdog prolongs the key by a bare PEXPIRE, whosever lock
// lies there by now, and does not look at the answer.
async function blindWatchdog(port, key) {
    const {createClient} = require('redis');
    const client = createClient({socket: {host: '127.0.0.1', port}});
    client.on('error', () => {});
    await client.connect();
    let token = '';
    return {
        acquire: async ttl => {
            token = crypto.randomUUID();
            return await client.set(key, token, {NX: true, PX: ttl}) === 'OK';
        },
        renew: async ttl => await client.pExpire(key, ttl) === 1,
        release: async () =>
            await client.eval(compareAndDelete, {keys: [key], arguments: [token]}) === 1,
        close: () => client.quit(),
    };
}

module.exports = {redlock4, redlock5, skippingJob, blindRelease, blindWatchdog};
