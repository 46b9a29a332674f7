import type { RunDetail } from '@/api/types';
import type { RunData, Token } from '@/run/data/runData';
import { TokenText } from '@/run/panels/TokenText';

/** The generated text: token by token from the events, or whole from the report if there are none. */
export function ReportText({ run, data }: { run: RunDetail; data: RunData | undefined }) {
  if (run.spec.workload.new_tokens === 0) return null;
  const recorded = data?.tokens.toArray() ?? [];
  const tokens = recorded.length > 0 ? recorded : fromReport(run);
  return <TokenText spec={run.spec} tokens={tokens} live={false} />;
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
