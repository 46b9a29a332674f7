import { Anchor, Button, Group, NumberInput, Select, Text } from '@mantine/core';
import { useState } from 'react';
import { sentence } from '@/api/client';
import { useCatalogue } from '@/api/queries';
import { between, three } from '@/format/units';
import { DataTable } from '@/components/DataTable';
import { useNow } from '@/components/useNow';
import { type PriceOf, Prices, pricesOf } from './Prices';
import type { AdviceQuestion } from './useAdvice';
import { type Ask, type QuestionKind, useQuestion } from './useQuestion';

const QUESTIONS: readonly { value: QuestionKind; label: string }[] = [
  { value: 'buy', label: 'What must I buy for …?' },
  { value: 'largest', label: 'Which is the largest model at …?' },
  { value: 'link', label: 'Which link is worth an upgrade?' },
  { value: 'cost', label: 'What does a token cost?' },
  { value: 'context', label: 'How long a context, how many at once?' },
  { value: 'start', label: 'How long does it take to send the weights to the boards?' },
];

const RANKS: readonly { value: NonNullable<Ask['rank']>; label: string }[] = [
  { value: 'power', label: 'Least power' },
  { value: 'price', label: 'Least price' },
  { value: 'number', label: 'Fewest boards' },
];

/** Questions about boards, models, links and costs, each answered in one sentence, then by a short table. */
export function AskAdvisor({ base }: { base: AdviceQuestion | null }) {
  const [kind, setKind] = useState<QuestionKind>('buy');
  const [rate, setRate] = useState(10);
  const [kwh, setKwh] = useState<number | null>(null);
  const [prices, setPrices] = useState<PriceOf>({});
  const [rank, setRank] = useState<Ask['rank']>(null);
  const presets = useCatalogue().data?.presets ?? [];
  const workers = base?.cluster?.devices.filter(({ role }) => role !== 'terminal') ?? [];
  const boards = { buy: presets, cost: workers, largest: [], link: [], context: [], start: [] }[kind];
  const { ask, stop, asked, reply, error, waiting } = useQuestion();
  const hasWorth = !!reply?.options.some(
    (option) => option.tokens_per_s_per_usd !== null || option.tokens_per_j !== null,
  );
  return (
    <div data-testid="questions">
      <Select
        size="xs"
        aria-label="Question"
        allowDeselect={false}
        value={kind}
        data={QUESTIONS}
        onChange={(value) => value && setKind(value)}
        data-testid="question-kind"
      />
      <Group gap="xs" mt={4} align="flex-end">
        {(kind === 'buy' || kind === 'largest') && (
          <NumberInput
            size="xs"
            label="Tokens a second"
            min={0.01}
            value={rate}
            onChange={(value) => typeof value === 'number' && value > 0 && setRate(value)}
            data-testid="question-rate"
          />
        )}
        {kind === 'buy' && (
          <Select
            size="xs"
            label="Ranked by"
            clearable
            placeholder="Price, else power"
            value={rank}
            data={RANKS}
            onChange={setRank}
            data-testid="question-rank"
          />
        )}
        {kind === 'cost' && (
          <NumberInput
            size="xs"
            label="Dollars per kWh, if any"
            min={0}
            value={kwh ?? ''}
            onChange={(value) => setKwh(typeof value === 'number' ? value : null)}
          />
        )}
        <Button
          size="xs"
          variant="default"
          loading={waiting !== null}
          disabled={base === null}
          data-testid="question-ask"
          onClick={() =>
            base &&
            ask({
              ...base,
              answer: false,
              question: kind,
              tokens_per_s: rate,
              prices: { boards: pricesOf(prices, boards), per_kwh: kind === 'cost' ? kwh : null },
              rank: kind === 'buy' ? rank : null,
            })
          }
        >
          Ask
        </Button>
      </Group>
      {boards.length > 0 && <Prices boards={boards} prices={prices} onChange={setPrices} />}
      <div aria-live="polite">
        {waiting && <Waiting {...waiting} stop={stop} />}
        {error && (
          <Text size="xs" c="red" mt={6} role="alert">
            {sentence(error)}
          </Text>
        )}
        {reply && (
          <Text size="sm" mt={6} data-testid="question-answer">
            {reply.sentence}
          </Text>
        )}
        {reply && asked && !isStillAsked(asked, base) && (
          <Text size="xs" c="dimmed" mt={2} data-testid="question-earlier">
            That was asked before the last change: ask again.
          </Text>
        )}
      </div>
      {reply && reply.options.length > 0 && (
        <DataTable
          fz="xs"
          mt={4}
          horizontalSpacing={4}
          rows={reply.options}
          keyOf={({ words }) => words}
          columns={[
            { head: 'Option', cell: ({ words }) => words },
            {
              head: reply.unit,
              cell: ({ figure, low, high }) => (
                <>
                  {three(figure)}
                  {low !== null && high !== null && (
                    <Text span size="xs" c="dimmed">{` (${between(low, high, three)})`}</Text>
                  )}
                </>
              ),
            },
            hasWorth && { head: 'tokens/s per $', cell: (option) => orNone(option.tokens_per_s_per_usd) },
            hasWorth && { head: 'tokens/J', cell: (option) => orNone(option.tokens_per_j) },
          ]}
        />
      )}
    </div>
  );
}

/** What an option gives for a dollar or a joule: a dash where no price or power is known. */
const orNone = (worth: number | null) => (worth === null ? '–' : three(worth));

/** Whether what was asked is about the cluster, model, workload and goal that the page shows. */
export const isStillAsked = (asked: Ask, base: AdviceQuestion | null): boolean =>
  base !== null && JSON.stringify({ ...asked, ...base, answer: false }) === JSON.stringify(asked);

/** That the question is not forgotten: since when it waits, and for what. */
function Waiting({ sinceMs, why, stop }: { sinceMs: number; why: string | null; stop: () => void }) {
  const seconds = Math.max(0, Math.round((useNow(1_000) - sinceMs) / 1_000));
  return (
    <Text size="xs" c="dimmed" mt={6} data-testid="question-waits">
      {why ? `${why} It is asked again by itself` : 'It is being answered'}
      <span aria-hidden="true">{`: ${seconds} s so far`}</span>.{' '}
      <Anchor component="button" type="button" inherit onClick={stop}>
        Stop waiting
      </Anchor>
    </Text>
  );
}
