/** Light, dark, or what the system prefers. */
export type Theme = 'system' | 'light' | 'dark';

const STORED = 'forge.theme';
const system = matchMedia('(prefers-color-scheme: dark)');

export const theme = $state<{ chosen: Theme }>({ chosen: readTheme() });

export function applyTheme(): void {
  const isDark = theme.chosen === 'system' ? system.matches : theme.chosen === 'dark';
  document.documentElement.dataset.theme = isDark ? 'dark' : 'light';
}

export function chooseTheme(chosen: Theme): void {
  theme.chosen = chosen;
  try {
    localStorage.setItem(STORED, chosen);
  } catch {
    // Storage may be blocked: the choice then lasts as long as the page.
  }
  applyTheme();
}

system.addEventListener('change', applyTheme);

function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORED);
    return stored === 'light' || stored === 'dark' ? stored : 'system';
  } catch {
    return 'system';
  }
}
