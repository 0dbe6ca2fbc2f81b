/** What a button does: one route, and the command that does the same. */
import type { ForgeError } from '@forge-jobs/client';
import { call } from '../api/request';
import { toasts } from './toasts.svelte';

export interface Action {
  /** The route as `GET /_api/me` lists it: the button is shown to those who may use it. */
  readonly route: string;
  /** The path with its parameters filled in. */
  readonly path: string;
  /** A verb with its object, such as "Cancel job". */
  readonly label: string;
  readonly body?: (reason: string) => unknown;
  readonly command: (reason: string) => string;
  /** Only for what cannot be undone, or needs a reason: what is asked before. */
  readonly confirm?: Confirmation | undefined;
  /** What to say when it is done, and where it can be followed. */
  readonly done: (answer: unknown) => { text: string; link?: { href: string; text: string } };
}

export interface Confirmation {
  /** What will happen, and to how many. */
  readonly effect: string;
  readonly reason: 'required' | 'optional' | 'none';
  /** Whether another action undoes it, so that its button does not warn. */
  readonly isReversible?: boolean;
}

export function methodOf(action: Action): string {
  return action.route.slice(0, action.route.indexOf(' '));
}

/** Carry out an action, say so, and pass on the answer; return the error if it failed. */
export async function perform(
  action: Action,
  reason = '',
  onDone?: (answer: unknown) => void,
): Promise<ForgeError | undefined> {
  try {
    const answer = await call<unknown>(methodOf(action), action.path, action.body?.(reason));
    const { text, link } = action.done(answer);
    toasts.show(text, { link });
    onDone?.(answer);
    return undefined;
  } catch (cause) {
    return cause as ForgeError;
  }
}

export function failureText(action: Action, error: ForgeError): string {
  const verb = action.label.charAt(0).toLowerCase() + action.label.slice(1).replace(/…$/, '');
  return `Could not ${verb}: ${error.message}`;
}
