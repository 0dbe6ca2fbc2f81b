import { configure } from '$lib/forge';

// The site mounts Forge under /forge, and gives the user who is logged in a token for it.
configure({
  url: '/forge',
  token: async () => {
    const response = await fetch('/token');
    if (!response.ok) throw new Error(`no token: ${response.status}`);
    return response.text();
  },
});
