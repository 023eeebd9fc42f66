// SPDX-License-Identifier: Apache-2.0
// An OpenID provider that others wrote, with rotating refresh tokens: one that comes twice revokes all of its grant.
// First line: `ready PORT REFRESH_TOKEN`, or `missing` and what is not installed. Then, for each line on stdin:
//   stats          -> JSON: how often which event of the provider came
//   redeem TOKEN   -> ok | the error
//   valid TOKEN    -> the status of the user's page with this access token
'use strict';

const readline = require('readline');
const {pathToFileURL} = require('url');

const tell = text => process.stdout.write(text + '\n');
const client = {client_id: 'crm', client_secret: 'secret'};

async function main() {
    let entry;
    try {
        entry = require.resolve('oidc-provider');
    } catch {
        tell('missing oidc-provider');
        return;
    }
    console.warn = console.info = () => {};
    const {default: Provider} = await import(pathToFileURL(entry));
    const provider = new Provider('http://127.0.0.1', {
        clients: [{
            ...client,
            grant_types: ['authorization_code', 'refresh_token'],
            redirect_uris: ['http://127.0.0.1/back'],
            token_endpoint_auth_method: 'client_secret_post',
        }],
        scopes: ['openid', 'offline_access'],
        rotateRefreshToken: true,
        findAccount: (context, id) => ({accountId: id, claims: () => ({sub: id})}),
        ttl: {AccessToken: 3600, RefreshToken: 86400, Grant: 86400},
    });
    const stats = {};
    for (const name of ['grant.success', 'grant.error', 'grant.revoked', 'refresh_token.consumed']) {
        stats[name] = 0;
        provider.on(name, () => { ++stats[name]; });
    }

    // As if a user had logged in and agreed.
    const grant = new provider.Grant({accountId: 'alice', clientId: client.client_id});
    grant.addOIDCScope('openid offline_access');
    const first = await new provider.RefreshToken({
        accountId: 'alice',
        client: await provider.Client.find(client.client_id),
        grantId: await grant.save(),
        scope: 'openid offline_access',
        gty: 'authorization_code',
        claims: {},
        iiat: Math.floor(Date.now() / 1000),
        rotations: 0,
    }).save();

    const server = provider.listen(0, '127.0.0.1', () => {
        const at = `http://127.0.0.1:${server.address().port}`;
        tell(`ready ${server.address().port} ${first}`);
        readline.createInterface({input: process.stdin}).on('line', async line => {
            const [word, token] = line.split(' ');
            if (word === 'stats') {
                tell(JSON.stringify(stats));
            } else if (word === 'redeem') {
                const answer = await fetch(`${at}/token`, {
                    method: 'POST',
                    body: new URLSearchParams({...client, grant_type: 'refresh_token', refresh_token: token}),
                });
                tell((await answer.json()).error || 'ok');
            } else if (word === 'valid') {
                const answer = await fetch(`${at}/me`, {headers: {authorization: `Bearer ${token}`}});
                tell(String(answer.status));
            }
        }).on('close', () => process.exit(0));
    });
}

main();
