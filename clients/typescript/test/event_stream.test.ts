import { expect, test, vi } from 'vitest';
import { readEvents, type StreamEvent } from '../src/live/event_stream.js';

async function eventsIn(chunks: Uint8Array[], onBytes = () => {}): Promise<StreamEvent[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const events: StreamEvent[] = [];
  for await (const event of readEvents(body, onBytes)) {
    if (event.data) events.push(event);
  }
  return events;
}

const TEXT =
  'retry: 2000\n\nevent: job\nid: 7\ndata: {"a": "größe"}\n\n:\n\nevent:problem\ndata:x\ndata: y\n\n';
const EVENTS = [
  { name: 'job', data: '{"a": "größe"}' },
  { name: 'problem', data: 'x\ny' },
];

test('events are read from a stream', async () => {
  expect(await eventsIn([new TextEncoder().encode(TEXT)])).toEqual(EVENTS);
});

test('chunks may end anywhere, within a character too', async () => {
  const bytes = new TextEncoder().encode(TEXT);
  const chunks = Array.from(bytes, (byte) => Uint8Array.of(byte));
  const onBytes = vi.fn();

  expect(await eventsIn(chunks, onBytes)).toEqual(EVENTS);
  expect(onBytes).toHaveBeenCalledTimes(bytes.length);
});

test('lines may end as Windows ends them', async () => {
  expect(await eventsIn([new TextEncoder().encode(TEXT.replaceAll('\n', '\r\n'))])).toEqual(EVENTS);
});

test('an event that is cut off is none', async () => {
  expect(await eventsIn([new TextEncoder().encode('event: job\ndata: 1')])).toEqual([]);
});
