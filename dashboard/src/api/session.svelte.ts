/** Who is signed in, and what they may do. */
import { ForgeClient, ForgeError } from '@forge-jobs/client';
import { asForgeError } from '@forge-jobs/client/errors';
import { codec } from './json';

/** What `GET /_api/me` answers. */
export interface Me {
  readonly name: string;
  readonly roles: readonly string[];
  readonly tenant_id: number | bigint | null;
  readonly read_only: boolean;
  /** The routes that this caller may use, such as `POST /_api/jobs/{job_id}/cancel`. */
  readonly allowed: readonly string[];
}

const STORED = 'forge.token';
/** The folder of the page: the server's address, under any prefix. */
export const BASE = new URL('.', location.href.split('#')[0]).href;
const TIMEOUT = 20_000;

class Session {
  me = $state.raw<Me>();
  /** Why nobody is signed in. */
  problem = $state.raw<ForgeError>();
  isStarting = $state(true);
  client = $state.raw(clientOf(null));
  /** Whether a token is stored that signing out forgets. */
  hasToken = $state(false);
  #allowed = $derived(new Set(this.me?.allowed));

  /** Whether the caller may use a route. */
  can(route: string): boolean {
    return this.#allowed.has(route);
  }

  /** Sign in with the token of the address or of this tab, or with the session of the host. */
  async start(): Promise<void> {
    const token = takeToken() ?? readStored();
    await this.#enter(token);
    this.isStarting = false;
  }

  /** Sign in with a token; return whether the server accepted it. */
  async signIn(token: string): Promise<boolean> {
    await this.#enter(token);
    return !!this.me;
  }

  signOut(): void {
    writeStored(null);
    this.me = undefined;
    this.hasToken = false;
    this.problem = undefined;
    this.client = clientOf(null);
  }

  /** The server rejected a request: sign in again. */
  expire(problem: ForgeError): void {
    this.signOut();
    this.problem = problem;
  }

  async #enter(token: string | null): Promise<void> {
    const client = clientOf(token);
    this.problem = undefined;
    try {
      const me = await send<Me>(client, 'GET', '/_api/me');
      writeStored(token);
      this.client = client;
      this.hasToken = token !== null;
      this.me = me;
    } catch (cause) {
      const error = asForgeError(cause, 'network');
      this.me = undefined;
      // Without a token, the first request only asks whether the host has a session.
      if (token !== null || error.status !== 401) this.problem = error;
      if (token !== null && error.status === 401) writeStored(null);
    }
  }
}

function clientOf(token: string | null): ForgeClient {
  return new ForgeClient({ url: BASE, json: codec, ...(token === null ? {} : { token }) });
}

/** Send one request; it is not repeated. */
export function send<T>(
  client: ForgeClient,
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<T> {
  const timeout = AbortSignal.timeout(TIMEOUT);
  return client.connection
    .request<T>(method, path, {
      body,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    })
    .catch((cause) => {
      if (timeout.aborted && !signal?.aborted) {
        throw new ForgeError('network', `No answer within ${TIMEOUT / 1000} s.`);
      }
      throw cause;
    });
}

/** Take the token out of the address, so that it is neither shared nor kept in the history. */
function takeToken(): string | null {
  const found = /^#token=([^&]+)/.exec(location.hash)?.[1];
  if (!found) return null;
  history.replaceState(null, '', `${location.pathname}${location.search}#/`);
  return decodeURIComponent(found);
}

function readStored(): string | null {
  try {
    return sessionStorage.getItem(STORED);
  } catch {
    return null;
  }
}

function writeStored(token: string | null): void {
  try {
    if (token === null) sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, token);
  } catch {
    // Storage may be blocked: the token then lasts as long as the page.
  }
}

export const session = new Session();
