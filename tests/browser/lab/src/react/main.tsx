import { count } from '../lab';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { Row } from './Row';

const root = createRoot(document.getElementById('page')!);
lab.leave = () => root.unmount();
root.render(
  <StrictMode>
    {Array.from({ length: count }, (_, index) => (
      <Row key={index} index={index} />
    ))}
  </StrictMode>,
);
