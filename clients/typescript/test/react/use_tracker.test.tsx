import { act, StrictMode, useEffect, version } from 'react';
import { createRoot, hydrateRoot, type Root } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type TrackerHook, useTracker } from '../../src/react.js';
import { createJobTracker } from '../../src/tracker.js';
import { fakeWorld, pass } from '../support/follow.js';

const world = fakeWorld();
let container: HTMLElement;
let root: Root | undefined;
let hook: TrackerHook<{ format: string }, string>;
let renderings: string[];
let created: number;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  container = document.createElement('div');
  renderings = [];
  created = 0;
  world.server.addJob('a', { progress_percent: 40 });
});

afterEach(async () => {
  await act(() => root?.unmount());
  root = undefined;
});

function Export({ attach }: { attach?: string }) {
  const mine = useTracker(() => {
    created++;
    return createJobTracker<{ format: string }, string>('export_users', { client: world.client });
  });
  hook = mine;
  const { job, connection, error } = mine;
  const text = `${job ? `${job.status} ${job.progress_percent}` : 'none'} ${connection} ${error?.code}`;
  renderings.push(text);
  return (
    <button type="button" onClick={() => attach && mine.attach(attach)}>
      {text}
    </button>
  );
}

function Attached() {
  const { job, attach } = useTracker(() =>
    createJobTracker('export_users', { client: world.client }),
  );
  useEffect(() => attach('a'), [attach]);
  return <p>{job?.progress_percent}</p>;
}

async function render(element: React.ReactNode): Promise<void> {
  await act(() => {
    root ??= createRoot(container);
    root.render(element);
  });
}

async function passed(milliseconds?: number): Promise<void> {
  await act(() => pass(milliseconds));
}

test('this project runs the version of React that it is named after', ({ task }) => {
  expect(`react ${version.split('.')[0]}`).toBe(task.file.projectName);
});

test('a component shows the states of the job that it starts', async () => {
  await render(<Export />);
  expect(container.textContent).toBe('none idle undefined');

  const jobId = await act(async () => {
    const started = hook.start({ format: 'csv' });
    await pass();
    return started;
  });
  expect(container.textContent).toBe('pending null live undefined');

  world.server.finish(jobId, { output: 'users.csv' });
  await passed();

  expect(container.textContent).toBe('completed null idle undefined');
  expect(hook.job).toMatchObject({ output: 'users.csv' });
  await expect(hook.done()).resolves.toBe('users.csv');
});

test('a component shows why a job cannot be followed', async () => {
  await render(<Export />);

  await act(async () => hook.attach('missing'));
  await passed();

  expect(container.textContent).toBe('none idle not_found');
});

test('the verbs are the same in every rendering', async () => {
  await render(<Export />);
  const { start, attach, cancel, done } = hook;

  await act(async () => hook.attach('a'));
  await passed();

  expect(hook).toMatchObject({ start, attach, cancel, done });
  expect(created).toBe(1);
});

test('a component that is unmounted ends the updates', async () => {
  await render(<Export />);
  await act(async () => hook.attach('a'));
  await passed();

  await render(null);
  await passed();

  expect(world.server.followed).toEqual([]);
});

test('two components have trackers of their own', async () => {
  world.server.addJob('b');
  await render(
    <>
      <Export attach="a" />
      <Export attach="b" />
    </>,
  );

  for (const button of container.querySelectorAll('button')) await act(async () => button.click());
  await passed();

  expect(container.textContent).toBe('pending 40 live undefinedpending null live undefined');
  expect(world.server.sockets).toHaveLength(1);
});

test('in StrictMode, in which effects run twice, a job is followed once', async () => {
  await render(
    <StrictMode>
      <Attached />
    </StrictMode>,
  );
  await passed();
  world.server.change('a', { progress_percent: 60 });
  await passed();

  expect(container.textContent).toBe('60');
  expect(world.server.followed).toEqual(['a']);
  await render(null);
  await passed();
  expect(world.server.followed).toEqual([]);
});

test('in StrictMode, a job that a click starts is followed', async () => {
  await render(
    <StrictMode>
      <Export attach="a" />
    </StrictMode>,
  );

  await act(async () => container.querySelector('button')?.click());
  await passed();

  expect(container.textContent).toBe('pending 40 live undefined');
});

test('a server renders the component and opens nothing', async () => {
  const html = renderToString(<Export />);
  await pass(60_000);

  expect(html).toContain('none idle undefined');
  expect(world.server.sockets).toEqual([]);
  expect(world.server.requests).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a server renders no state, even if there is one', async () => {
  const tracker = createJobTracker('export_users', { client: world.client });
  tracker.attach('a');
  await pass();
  const Page = () => <p>{useTracker(() => tracker).job?.status ?? 'none'}</p>;

  expect(tracker.get()?.status).toBe('pending');
  expect(renderToString(<Page />)).toBe('<p>none</p>');
});

test('a browser takes over what a server rendered', async () => {
  container.innerHTML = renderToString(<Export attach="a" />);
  const report = vi.spyOn(console, 'error');

  await act(() => {
    root = hydrateRoot(container, <Export attach="a" />);
  });
  await act(async () => container.querySelector('button')?.click());
  await passed();

  expect(container.textContent).toBe('pending 40 live undefined');
  expect(report).not.toHaveBeenCalled();
});

test('a state renders the component once', async () => {
  await render(<Export />);
  await act(async () => hook.attach('a'));
  await passed();
  renderings = [];

  world.server.change('a', { progress_percent: 60 });
  await passed();

  expect(renderings).toEqual(['pending 60 live undefined']);
});
