/** The tokens of a report, for a page that has no events: it knows their times and the whole text, not single texts. */
import type { RunReport } from '@/api/types';
import type { Token } from '@/run/data/runData';

/** A token without a text of its own would be shown as its number. */
const NO_TEXT = '\u200b';

/** The text of a request is that of its first token. Without a text, tokens are shown by their numbers. */
export function reportTokens({ requests }: Pick<RunReport, 'requests'>): Token[] {
  return requests.flatMap(({ index: request, text, output_tokens, token_s, arrival_s }) =>
    token_s.map((time_s, index) => ({
      request,
      index,
      token: output_tokens[index] ?? -1,
      text: text === '' ? '' : index === 0 ? text : NO_TEXT,
      latency_s: time_s - (token_s[index - 1] ?? 0),
      time_s: arrival_s + time_s,
    })),
  );
}
