import type { RunDetail } from '@/api/types';
import type { RunData } from '@/run/data/runData';
import { TokenText } from '@/run/panels/TokenText';
import { reportTokens } from './reportTokens';

/** The generated text: token by token from the events; whole, from the report, without these. */
export function ReportText({ run, data }: { run: RunDetail; data: RunData | undefined }) {
  if (run.spec.workload.new_tokens === 0) return null;
  const recorded = data?.tokens.toArray() ?? [];
  const tokens = recorded.length > 0 || !run.report ? recorded : reportTokens(run.report);
  return <TokenText spec={run.spec} tokens={tokens} served={data?.service.requests} live={false} />;
}
