import type { RunDetail } from '@/api/types';
import type { RunData, Token } from '@/run/data/runData';
import { TokenText } from '@/run/panels/TokenText';

/** The generated text: token by token from the events; whole, from the report, until these have been read. */
export function ReportText({ run, data }: { run: RunDetail; data: RunData | undefined }) {
  if (run.spec.workload.new_tokens === 0) return null;
  const recorded = data?.tokens.toArray() ?? [];
  if (recorded.length > 0) return <TokenText spec={run.spec} tokens={recorded} live={false} />;
  const count = run.report?.requests[0]?.token_s.length;
  return <TokenText spec={run.spec} tokens={fromReport(run)} count={count} live={false} />;
}

/** One text per request: the report does not have the texts of single tokens. */
function fromReport(run: RunDetail): Token[] {
  return (run.report?.requests ?? []).map((request) => ({
    request: request.index,
    index: 0,
    token: -1,
    text: request.text || request.output_tokens.join(' '),
    latency_s: request.ttft_s,
    time_s: request.arrival_s,
  }));
}
