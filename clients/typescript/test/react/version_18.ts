// React DOM 18 requires `react`, which is version 19 beside it.
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    return next(specifier.replace(/^react(?=\/|$)/, 'react-18'), context);
  },
});
