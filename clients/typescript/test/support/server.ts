// A server of Forge in memory: its routes, its socket protocol, and the ways in which both fail.
import type { ClientMessage, ListFilter, LiveJob, ServerMessage } from '../../src/api.js';

const MAX_SUBSCRIPTIONS = 1000;
const LATENCY = 5;

type Handler<E> = ((event: E) => void) | null;

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: unknown;
}

/** What `fetch` does with a request, instead of the server's own answer. */
export type Answer = (request: HttpRequest) => Response | undefined | Promise<Response | undefined>;

export class FakeServer {
  readonly jobs = new Map<string, LiveJob>();
  readonly tokens = new Set<string>();
  readonly watchTokens = new Map<string, string>();
  readonly sockets: FakeSocket[] = [];
  readonly requests: HttpRequest[] = [];
  readonly streams = new Map<ReadableStreamDefaultController<Uint8Array>, string>();
  /** Whether HTTP requests get a response. */
  isUp = true;
  /** `refused`: no handshake. `hanging`: no response to it. `silent`: nothing after it. */
  socketMode: 'open' | 'refused' | 'hanging' | 'silent' = 'open';
  /** `buffered`: a proxy holds all events back. */
  streamMode: 'open' | 'refused' | 'buffered' = 'open';
  isRefusingLists = false;
  answer: Answer = () => undefined;
  #dispatched = new Map<string, string>();

  /** The constructor of sockets that lead to this server. */
  get WebSocket(): typeof WebSocket {
    const server = this;
    return class extends FakeSocket {
      constructor(url: string | URL) {
        super(server, String(url));
      }
    } as unknown as typeof WebSocket;
  }

  get openSockets(): FakeSocket[] {
    return this.sockets.filter((socket) => socket.readyState < 2);
  }

  /** The ids of the jobs that open sockets follow. */
  get followed(): string[] {
    return this.openSockets.flatMap((socket) => [...socket.followed]);
  }

  get socket(): FakeSocket {
    const [socket] = this.openSockets.slice(-1);
    if (!socket) throw new Error('no socket is open');
    return socket;
  }

  addJob(id: string, fields: Partial<LiveJob> = {}): void {
    this.jobs.set(id, { ...NEW_JOB, id, ...fields });
    this.watchTokens.set(`watch ${id}`, id);
  }

  /** Change a job and tell its followers. */
  change(id: string, fields: Partial<LiveJob>): void {
    const job = this.jobs.get(id) ?? NEW_JOB;
    const changed = { ...job, version: job.version + 1, ...fields };
    this.jobs.set(id, changed);
    for (const socket of this.openSockets) if (socket.followed.has(id)) socket.push(changed);
    for (const [stream, followed] of this.streams) {
      if (followed === id) this.sendEvent(stream, 'job', changed);
    }
  }

  finish(id: string, fields: Partial<LiveJob> = {}): void {
    this.change(id, { status: 'completed', state: 'completed', ...fields });
  }

  /** Close every socket and stream, as a restart does. */
  disconnect(code = 1006): void {
    for (const socket of this.openSockets) socket.closeFromServer(code);
    for (const stream of this.streams.keys()) stream.close();
    this.streams.clear();
  }

  readonly fetch = async (target: string | URL | Request, init: RequestInit = {}) => {
    const { pathname, search } = new URL(String(target), 'http://forge.test');
    const request = {
      method: init.method ?? 'GET',
      path: pathname + search,
      headers: init.headers as Record<string, string>,
      body: init.body ? JSON.parse(init.body as string) : undefined,
    };
    init.signal?.throwIfAborted();
    this.requests.push(request);
    await aborted(init.signal, new Promise((resolve) => setTimeout(resolve, LATENCY)));
    const given = this.isUp ? await this.answer(request) : undefined;
    if (!this.isUp) throw new TypeError('Failed to fetch');
    return given ?? this.#route(request, init.signal);
  };

  receive(socket: FakeSocket, message: ClientMessage): void {
    if (message.type === 'auth') {
      socket.isAuthenticated = this.tokens.has(message.token);
      if (!socket.isAuthenticated) socket.reject();
    } else if ('id' in message) {
      if (message.type === 'unsubscribe') socket.lists.delete(message.id);
      else if (this.isRefusingLists) socket.refuse(message.id);
      else socket.lists.set(message.id, message.filter);
      if (socket.lists.has(message.id)) socket.changed(message.id);
    } else if (message.type === 'unsubscribe') {
      socket.followed.delete(message.job_id);
    } else {
      const problem = this.#problemWith(socket, message.job_id, message.watch_token);
      if (problem) {
        socket.fail(problem, message.job_id);
      } else {
        socket.followed.add(message.job_id);
        socket.push(this.jobs.get(message.job_id) as LiveJob);
      }
    }
  }

  sendEvent(stream: ReadableStreamDefaultController<Uint8Array>, name: string, data: object): void {
    if (this.streamMode === 'buffered') return;
    const text = `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
    stream.enqueue(new TextEncoder().encode(text));
  }

  #problemWith(socket: FakeSocket, jobId: string, watchToken?: string | null): string | undefined {
    const isAllowed = watchToken
      ? this.watchTokens.get(watchToken) === jobId
      : socket.isAuthenticated;
    if (!isAllowed) return 'unauthenticated';
    if (!this.jobs.has(jobId)) return 'not_found';
    if (socket.followed.has(jobId) || socket.followed.size < MAX_SUBSCRIPTIONS) return undefined;
    return 'too_many';
  }

  #route(request: HttpRequest, signal: AbortSignal | null | undefined): Response {
    const { method } = request;
    const path = decodeURIComponent(request.path);
    const [, id = '', verb = '', query = ''] =
      /^\/_api\/jobs\/([^/?]*)\/?(\w*)\??(.*)/.exec(path) ?? [];
    const watchToken = new URLSearchParams(query).get('watch_token');
    const bearer = request.headers.Authorization?.replace('Bearer ', '');
    const isAllowed = watchToken
      ? this.watchTokens.get(watchToken) === id
      : !this.tokens.size || this.tokens.has(bearer ?? '');
    if (!isAllowed) return problem(401, 'unauthenticated');
    if (verb === 'dispatch') return this.#dispatch(id, request.body as Record<string, unknown>);
    const job = this.jobs.get(id);
    if (!job) return problem(404, 'not_found');
    if (verb === 'live') return json(200, job);
    if (verb === 'events') return this.#stream(job, signal);
    return method === 'GET'
      ? json(200, job)
      : json(202, { job_id: 'request', target_id: id, verb });
  }

  #dispatch(jobType: string, body: Record<string, unknown>): Response {
    const key = body.idempotency_key as string | undefined;
    const known = key && this.#dispatched.get(key);
    const id = known || `job-${this.jobs.size + 1}`;
    if (!known) this.addJob(id, { job_type: jobType });
    if (key) this.#dispatched.set(key, id);
    return json(202, {
      job_id: id,
      status: 'pending',
      deduplicated: !!known,
      watch_token: `watch ${id}`,
    });
  }

  #stream(job: LiveJob, signal: AbortSignal | null | undefined): Response {
    if (this.streamMode === 'refused') return problem(503, 'unavailable');
    const body = new ReadableStream<Uint8Array>({
      start: (stream) => {
        this.streams.set(stream, job.id);
        signal?.addEventListener('abort', () => {
          this.streams.delete(stream);
          stream.error(signal.reason);
        });
        this.sendEvent(stream, 'job', job);
      },
    });
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
  }
}

export class FakeSocket {
  readyState = 0;
  onopen: Handler<Event> = null;
  onmessage: Handler<{ data: string }> = null;
  onclose: Handler<{ code: number }> = null;
  readonly received: ClientMessage[] = [];
  readonly followed = new Set<string>();
  readonly lists = new Map<string, ListFilter>();
  isAuthenticated = false;
  /** Whether the network swallows everything, without an error. */
  isHalfOpen = false;

  readonly server: FakeServer;
  readonly url: string;
  readonly createdAt = Date.now();

  constructor(server: FakeServer, url: string) {
    this.server = server;
    this.url = url;
    server.sockets.push(this);
    if (server.socketMode === 'hanging') return;
    setTimeout(() => {
      if (this.readyState !== 0) return;
      if (!server.isUp || server.socketMode === 'refused') {
        this.#ended(1006);
        return;
      }
      this.readyState = 1;
      this.isHalfOpen = server.socketMode === 'silent';
      this.onopen?.(new Event('open'));
    }, LATENCY);
  }

  send(data: string): void {
    if (this.readyState !== 1) throw new Error(`send in state ${this.readyState}`);
    const message = JSON.parse(data) as ClientMessage;
    this.received.push(message);
    setTimeout(() => {
      if (!this.isHalfOpen && this.readyState === 1) this.server.receive(this, message);
    }, LATENCY);
  }

  close(): void {
    if (this.readyState >= 2) return;
    this.readyState = 2;
    this.followed.clear();
    // A half-open socket waits for a response that never comes.
    if (!this.isHalfOpen) setTimeout(() => this.#ended(1005), LATENCY);
  }

  closeFromServer(code: number): void {
    if (!this.isHalfOpen) this.#ended(code);
  }

  push(job: LiveJob): void {
    this.#deliver({ type: 'job', job });
  }

  fail(code: string, jobId: string): void {
    this.followed.delete(jobId);
    this.#deliver({ type: 'error', code, message: `${code} ${jobId}`, job_id: jobId });
  }

  changed(id: string): void {
    this.#deliver({ type: 'changed', id });
  }

  refuse(id: string): void {
    this.#deliver({ type: 'error', code: 'too_many', message: 'too many lists', id });
  }

  reject(): void {
    this.#deliver({ type: 'error', code: 'unauthenticated', message: 'the token is invalid' });
    setTimeout(() => this.closeFromServer(4401), LATENCY);
  }

  #deliver(message: ServerMessage): void {
    if (this.isHalfOpen) return;
    const data = JSON.stringify(message);
    setTimeout(() => {
      if (this.readyState === 1) this.onmessage?.({ data });
    }, LATENCY);
  }

  #ended(code: number): void {
    if (this.readyState === 3) return;
    this.readyState = 3;
    this.followed.clear();
    this.onclose?.({ code });
  }
}

export function json(status: number, content: unknown, headers: HeadersInit = {}): Response {
  return new Response(JSON.stringify(content), { status, headers });
}

export function problem(status: number, code: string, more: object = {}, headers = {}): Response {
  return json(status, { code, status, detail: `${code}: what to do`, ...more }, headers);
}

async function aborted(signal: AbortSignal | null | undefined, done: Promise<unknown>) {
  await Promise.race([
    done,
    new Promise((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
    }),
  ]);
}

const NEW_JOB: LiveJob = {
  id: '',
  job_type: 'export_users',
  status: 'pending',
  state: 'queued',
  version: 1,
  attempts: 0,
  max_attempts: 3,
  progress_percent: null,
  progress_message: null,
  last_error: null,
  output: null,
  undecodable: [],
  created_at: '2026-01-01T00:00:00Z',
  scheduled_at: '2026-01-01T00:00:00Z',
  started_at: null,
  completed_at: null,
  failed_at: null,
  cancelled_at: null,
};
