import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import '../session';
import { ExportUsers } from './ExportUsers';

createRoot(document.getElementById('page')!).render(
  <StrictMode>
    <ExportUsers />
  </StrictMode>,
);
