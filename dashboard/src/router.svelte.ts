/** The address is the state: `#/jobs?status=failed` names a screen and its parameters. */
import type { Query } from './api/request';
import { withQuery } from './api/request';

export interface Location {
  /** Without the query: `/jobs`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

export function parseHash(hash: string): Location {
  const [path = '', query = ''] = splitOnce(hash.replace(/^#/, ''), '?');
  return {
    path: path.startsWith('/') ? path : '/',
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Return the address of a screen, for links. */
export function href(path: string, query: Query = {}): string {
  return `#${withQuery(path, query)}`;
}

/** Return the parameters of a path that matches a pattern such as `/jobs/:id`. */
export function match(pattern: string, path: string): Record<string, string> | undefined {
  const names = pattern.split('/');
  const parts = path.replace(/(.)\/$/, '$1').split('/');
  if (names.length !== parts.length) return undefined;
  const found: Record<string, string> = {};
  for (const [index, name] of names.entries()) {
    const part = parts[index] ?? '';
    if (name.startsWith(':')) found[name.slice(1)] = decode(part);
    else if (name !== part) return undefined;
  }
  return found;
}

class Router {
  location = $state.raw(parseHash(location.hash));

  constructor() {
    addEventListener('hashchange', () => {
      this.location = parseHash(location.hash);
    });
  }

  go(path: string, query: Query = {}): void {
    location.hash = href(path, query);
  }

  /** Change parameters of the present screen; null removes one. */
  set(changes: Query, { replace = false } = {}): void {
    const { path, query } = this.location;
    const address = href(path, { ...query, ...changes });
    if (address === location.hash) return;
    if (!replace) location.hash = address;
    else {
      history.replaceState(null, '', address);
      this.location = parseHash(address);
    }
  }
}

function splitOnce(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const router = new Router();
