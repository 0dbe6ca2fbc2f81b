import { useExportUsersJob } from '$lib/forge/react';

export function ExportUsers() {
  const { job, start, cancel, error } = useExportUsersJob();
  return (
    <>
      <h1>Export users with React</h1>
      <button onClick={() => start({ format: 'csv' })}>Export as CSV</button>
      <button onClick={() => start({ format: 'pdf' })}>Export as PDF, which fails</button>
      <button onClick={cancel} disabled={!job}>
        Cancel
      </button>
      {job && (
        <div className="progress">
          <div className="bar" style={{ width: `${job.progress_percent}%` }} />
          <span>{job.progress_message}</span>
        </div>
      )}
      {job?.status === 'completed' && <p>{job.output.count} users exported.</p>}
      {job?.status === 'failed' && <p className="error">{job.last_error}</p>}
      {job?.status === 'cancelled' && <p>The export was cancelled.</p>}
      {error && <p className="error">{error.message}</p>}
    </>
  );
}
