// An OpenID provider as the authorization server of tests: node oidc_provider.mjs PORT RESOURCE OPTIONS
//
// OPTIONS is JSON: ttl (seconds of access tokens), registration (whether clients can register), and
// clientMetadata ({address: document}, in place of the web for client ID metadata documents).
// Access tokens are JWTs for RESOURCE and the addresses below it. `login_hint` says who the user is, `ann` by
// default; the user agrees at once, and `nobody` declines. One line of JSON on stdout for each event.

import http from 'node:http';
import { Provider, errors } from 'oidc-provider';

const [port, resource, given] = process.argv.slice(2);
const options = { ttl: 3600, registration: true, clientMetadata: null, ...JSON.parse(given ?? '{}') };
const issuer = `http://127.0.0.1:${port}`;
const scopes = 'tools read write delete';
const log = (event, about = {}) => console.log(JSON.stringify({ event, ...about }));
const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const idJag = 'urn:ietf:params:oauth:token-type:id-jag';

const resourceServer = (address) => ({
  scope: scopes,
  audience: address,
  accessTokenTTL: options.ttl,
  accessTokenFormat: 'jwt',
  jwt: { sign: { alg: 'RS256' } },
});

const provider = new Provider(issuer, {
  scopes: ['openid', 'offline_access', ...scopes.split(' ')],
  clients: [
    {
      client_id: 'by-hand',
      client_secret: 'secret-of-by-hand',
      redirect_uris: ['http://127.0.0.1:7777/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_post',
      application_type: 'native',
    },
    {
      client_id: 'machine',
      client_secret: 'secret-of-machine',
      redirect_uris: [],
      response_types: [],
      grant_types: ['client_credentials', exchange],
      token_endpoint_auth_method: 'client_secret_basic',
    },
    {
      client_id: 'at-the-identity-provider',
      client_secret: 'secret-of-identity',
      redirect_uris: [],
      response_types: [],
      grant_types: [exchange],
      token_endpoint_auth_method: 'client_secret_post',
    },
  ],
  cookies: { keys: ['of the tests'] },
  pkce: { required: () => true },
  ttl: { AccessToken: options.ttl, ClientCredentials: options.ttl, RefreshToken: 86400 },
  rotateRefreshToken: true,
  issueRefreshToken: async (ctx, client) => client.grantTypeAllowed('refresh_token'),
  findAccount: async (ctx, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  extraTokenClaims: async (ctx) => ({
    groups: ['sales'],
    // The resource that an identity assertion is for, and the client there, which has another name here.
    ...(ctx.oidc.params?.requested_token_type === idJag && { resource: ctx.oidc.params.resource }),
  }),
  formats: {
    customizers: {
      jwt: async (ctx, token, jwt) => {
        if (token.gty === 'id-jag') jwt.header = { ...jwt.header, typ: 'oauth-id-jag+jwt' };
      },
    },
  },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: options.registration },
    revocation: { enabled: true },
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: options.clientMetadata !== null, ack: 'draft-02' },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, address) => {
        if (address !== resource && !address.startsWith(`${resource}/`)) throw new errors.InvalidTarget();
        return resourceServer(address);
      },
    },
  },
  fetch: async (url) => {
    const document = options.clientMetadata?.[String(url)];
    if (!document) throw new Error('there is no network here');
    return new Response(JSON.stringify(document), { headers: { 'content-type': 'application/json' } });
  },
});

// RFC 8693: a token for this gateway becomes one for another resource, of the same user, or an identity
// assertion for another authorization server (`audience`).
provider.registerGrantType(
  exchange,
  async (ctx) => {
    const { subject_token: subject, requested_token_type: kind } = ctx.oidc.params;
    const wanted = kind === idJag ? ctx.oidc.params.audience : ctx.oidc.params.resource;
    const { sub } = JSON.parse(Buffer.from(subject.split('.')[1], 'base64url'));
    const { client } = ctx.oidc;
    const grant = new provider.Grant({ accountId: sub, clientId: client.clientId });
    grant.addResourceScope(wanted, 'tools');
    const token = new provider.AccessToken({
      accountId: sub, client, grantId: await grant.save(), scope: 'tools',
      gty: kind === idJag ? 'id-jag' : 'token-exchange',
    });
    token.resourceServer = new provider.ResourceServer(wanted, resourceServer(wanted));
    ctx.body = {
      access_token: await token.save(),
      issued_token_type: kind === idJag ? idJag : 'urn:ietf:params:oauth:token-type:access_token',
      token_type: kind === idJag ? 'N_A' : 'Bearer',
      expires_in: options.ttl,
    };
    log('token-exchange', { subject: sub, resource: wanted });
  },
  ['subject_token', 'subject_token_type', 'resource', 'audience', 'scope', 'requested_token_type'],
);

for (const event of ['registration_create.success', 'grant.success', 'grant.error', 'grant.revoked',
  'authorization.error', 'server_error', 'revocation.success'])
  provider.on(event, (...about) => {
    const error = about.find((one) => one instanceof Error);
    const { params } = about.find((one) => one?.oidc)?.oidc ?? {};
    log(event, { grant: params?.grant_type, error: error && `${error.message}: ${error.error_description}` });
  });

const answer = provider.callback();

async function interact(request, response) {
  const { params, prompt, session, grantId } = await provider.interactionDetails(request, response);
  const user = params.login_hint ?? 'ann';
  if (user === 'nobody')
    return provider.interactionFinished(request, response, { error: 'access_denied' });
  if (prompt.name === 'login')
    return provider.interactionFinished(request, response, { login: { accountId: user } });
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingResourceScopes } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  for (const [address, missing] of Object.entries(missingResourceScopes ?? {}))
    grant.addResourceScope(address, missing.join(' '));
  const consent = { grantId: await grant.save() };
  return provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

http
  .createServer((request, response) =>
    request.url.startsWith('/interaction/') ? interact(request, response) : answer(request, response))
  .listen(Number(port), '127.0.0.1', () => log('listening', { issuer }));
