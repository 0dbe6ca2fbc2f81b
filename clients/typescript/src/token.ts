import { asForgeError } from './errors.js';

/** A token, or a function that fetches one; it is called again when the server rejects the last. */
export type Token = string | (() => string | Promise<string>);

/** Keeps a token until it is forgotten. */
export interface TokenSource {
  /** Whether `get` can return another token after `forget`. */
  readonly isRenewable: boolean;
  get(): Promise<string>;
  /** Forget the token of this promise, if a newer one has not replaced it. */
  forget(used?: Promise<string>): void;
}

export function tokenSource(token: Token): TokenSource {
  let held: Promise<string> | undefined;

  async function ask(): Promise<string> {
    try {
      // Not before `held` is set, which a function that throws at once would outrun.
      await undefined;
      return typeof token === 'string' ? token : await token();
    } catch (cause) {
      held = undefined;
      throw asForgeError(cause, 'token');
    }
  }

  return {
    isRenewable: typeof token !== 'string',
    get() {
      held ??= ask();
      return held;
    },
    forget(used = held) {
      if (held === used) held = undefined;
    },
  };
}
