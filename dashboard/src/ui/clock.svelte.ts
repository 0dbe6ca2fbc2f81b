/** The time, once a second while the page is visible: every relative time reads it. */
class Clock {
  now = $state(Date.now());

  constructor() {
    const tick = () => {
      if (!document.hidden) this.now = Date.now();
    };
    setInterval(tick, 1000);
    document.addEventListener('visibilitychange', tick);
  }
}

export const clock = new Clock();
