// Activity hides and shows a component, with React 19 alone.
import { Activity, act } from 'react';
import { createRoot } from 'react-dom/client';
import { beforeEach, expect, test, vi } from 'vitest';
import { useTracker } from '../../src/react.js';
import { createJobTracker } from '../../src/tracker.js';
import { fakeWorld, pass } from '../support/follow.js';

const world = fakeWorld();

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
});

function Progress() {
  const { job, attach } = useTracker(() =>
    createJobTracker('export_users', { client: world.client }),
  );
  return (
    <button type="button" onClick={() => attach('a')}>
      {job?.progress_percent}
    </button>
  );
}

test('a component that is hidden and shown goes on', async () => {
  world.server.addJob('a', { progress_percent: 40 });
  const container = document.createElement('div');
  const root = createRoot(container);
  async function show(mode: 'visible' | 'hidden'): Promise<void> {
    await act(() =>
      root.render(
        <Activity mode={mode}>
          <Progress />
        </Activity>,
      ),
    );
    await act(() => pass());
  }
  await show('visible');
  await act(async () => {
    container.querySelector('button')?.click();
    await pass();
  });
  expect(container.textContent).toBe('40');

  await show('hidden');
  expect(world.server.followed).toEqual([]);
  world.server.change('a', { progress_percent: 60 });
  await show('visible');

  expect(container.textContent).toBe('60');
  await act(() => root.unmount());
});
