import type { ClientMessage, ListFilter, ServerMessage } from '../api.js';
import { backoff, type Http } from '../http.js';

/** Reports when lists of jobs may have changed, over one socket that is open while there are any. */
export interface Lists {
  watch(filter: ListFilter, onChange: () => void): () => void;
}

// Milliseconds.
/** How often a list that is not followed on the socket counts as changed. */
const POLL = 5000;
/** A silent socket is asked, and given up without an answer. */
const SILENCE = 30_000;
const ANSWER_TIMEOUT = 10_000;
const LINGER = 3000;
/** After a longer pause between two ticks, timers were frozen. */
const FROZEN = 10_000;
const TICK = 1000;

interface List {
  readonly filter: ListFilter;
  readonly onChange: () => void;
  /** When it was last reported, and whether the socket follows it. */
  reportedAt: number;
  isFollowed: boolean;
}

export function openLists(http: Http, newSocket: () => WebSocket): Lists {
  const lists = new Map<string, List>();
  let created = 0;
  let socket: WebSocket | undefined;
  let isOpening = false;
  let failures = 0;
  let retryAt = 0;
  let heardAt = 0;
  let askedAt = 0;
  let tickedAt = 0;
  let emptySince = 0;
  let ticker: ReturnType<typeof setInterval> | undefined;

  function watch(filter: ListFilter, onChange: () => void): () => void {
    const id = String(++created);
    lists.set(id, { filter, onChange, reportedAt: Date.now(), isFollowed: false });
    if (!ticker) {
      tickedAt = Date.now();
      ticker = setInterval(tick, TICK);
      globalThis.addEventListener?.('online', drop);
    }
    if (socket?.readyState === 1) subscribe(id);
    else void open();
    return () => {
      if (lists.delete(id)) send({ type: 'unsubscribe', id });
      emptySince = Date.now();
    };
  }

  async function open(): Promise<void> {
    if (socket || isOpening || Date.now() < retryAt) return;
    isOpening = true;
    try {
      const token = await http.bearer?.get();
      if (!ticker) return;
      const mine = newSocket();
      socket = mine;
      heardAt = Date.now();
      askedAt = heardAt;
      mine.onopen = () => {
        if (token) send({ type: 'auth', token });
        for (const id of lists.keys()) subscribe(id);
      };
      mine.onmessage = ({ data }) => {
        if (socket === mine) heard(http.json.parse(data) as ServerMessage);
      };
      mine.onclose = () => {
        if (socket === mine) drop();
      };
    } catch {
      drop();
    } finally {
      isOpening = false;
    }
  }

  function heard(message: ServerMessage): void {
    heardAt = Date.now();
    askedAt = 0;
    const list = 'id' in message ? lists.get(message.id ?? '') : undefined;
    if (!list) return;
    // A list that was refused is reported as often as one without a socket, and asked for again.
    list.isFollowed = message.type === 'changed';
    if (!list.isFollowed) return;
    failures = 0;
    report(list);
  }

  /** Give the socket up; the next tick opens another, later with each failure. */
  function drop(): void {
    const lost = socket;
    socket = undefined;
    lost?.close();
    askedAt = 0;
    failures++;
    retryAt = Date.now() + backoff(failures);
    for (const list of lists.values()) list.isFollowed = false;
    http.bearer?.forget();
  }

  function tick(): void {
    const now = Date.now();
    if (!lists.size && now - emptySince >= LINGER) {
      stop();
      return;
    }
    if (now - tickedAt > FROZEN && socket) drop();
    tickedAt = now;
    if (askedAt && now - askedAt > ANSWER_TIMEOUT) drop();
    else if (!askedAt && socket && now - heardAt > SILENCE) probe(now);
    void open();
    for (const [id, list] of lists) {
      if (list.isFollowed || now - list.reportedAt < POLL) continue;
      report(list);
      subscribe(id);
    }
  }

  /** Send a heartbeat: the answer to a subscription that is repeated. */
  function probe(now: number): void {
    const [id] = lists.keys();
    if (id === undefined) return;
    askedAt = now;
    subscribe(id);
  }

  function report(list: List): void {
    list.reportedAt = Date.now();
    list.onChange();
  }

  function subscribe(id: string): void {
    const list = lists.get(id);
    if (list) send({ type: 'subscribe', id, filter: list.filter });
  }

  function send(message: ClientMessage): void {
    if (socket?.readyState === 1) socket.send(JSON.stringify(message));
  }

  function stop(): void {
    clearInterval(ticker);
    ticker = undefined;
    globalThis.removeEventListener?.('online', drop);
    socket?.close();
    socket = undefined;
    failures = 0;
    retryAt = 0;
  }

  return { watch };
}
