/** Short messages about what a person has just done. */
export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: 'completed' | 'failed';
  /** Where what was done can be followed. */
  readonly link?: { readonly href: string; readonly text: string } | undefined;
}

const LIFETIME = 6000;

class Toasts {
  shown = $state.raw<readonly Toast[]>([]);
  #last = 0;

  show(
    text: string,
    options: Omit<Toast, 'id' | 'text' | 'tone'> & { tone?: Toast['tone'] } = {},
  ): void {
    const toast: Toast = { tone: 'completed', ...options, id: ++this.#last, text };
    this.shown = [...this.shown, toast].slice(-4);
    // Errors stay until they are dismissed.
    if (toast.tone === 'completed') setTimeout(() => this.dismiss(toast.id), LIFETIME);
  }

  dismiss(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
