/** The environment's name, which the server writes into the page. */
export const LABEL =
  document.querySelector<HTMLMetaElement>('meta[name="forge-label"]')?.content ?? '';

export const isProduction = /^(prod|live)/i.test(LABEL);
