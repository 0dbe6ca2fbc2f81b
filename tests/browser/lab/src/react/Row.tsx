import { useExportUsersJob } from '$lib/forge/react';
import { useEffect } from 'react';

export function Row({ index }: { index: number }) {
  const { job, connection, error, start, attach, cancel, done } = useExportUsersJob();
  useEffect(() => {
    lab.trackers[index] = { start, attach, cancel, done };
  }, [index, start, attach, cancel, done]);
  return (
    <section data-connection={connection} data-error={error?.code ?? ''} data-status={job?.status ?? ''}>
      {job && (
        <div className="progress">
          <div className="bar" style={{ width: `${job.progress_percent}%` }} />
          <span>{job.progress_message}</span>
        </div>
      )}
      {job?.status === 'completed' && <p>Export complete!</p>}
      {job?.status === 'failed' && <p className="error">{job.last_error}</p>}
    </section>
  );
}
