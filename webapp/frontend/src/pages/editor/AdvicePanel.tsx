import { Button, NumberInput, Select, Text } from '@mantine/core';
import { useState } from 'react';
import { sentence } from '@/api/client';
import { useCatalogue } from '@/api/queries';
import type { Objective } from '@/api/types';
import { AdviceList } from '@/advice/AdviceList';
import { Changes } from '@/advice/Changes';
import { AskAdvisor } from '@/advice/AskAdvisor';
import { Verdict } from '@/advice/Verdict';
import { GOALS } from '@/advice/objectives';
import { type AdviceQuestion, useAdvice, useChanges } from '@/advice/useAdvice';
import { useOnce } from '@/components/useOnce';
import { activeSpec } from '@/cluster/drawing';
import classes from './editor.module.css';
import { type Bits, WeightBits } from '@/run/request/WeightBits';
import { useDrawing } from './editorStore';

const PROMPT_TOKENS = 32;

/** Every strategy on the drawn cluster, ranked by prediction; asked again after every edit that leaves no problem. */
export function AdvicePanel({ problems }: { problems: boolean }) {
  const drawing = useDrawing();
  const catalogue = useCatalogue().data;
  const [name, setName] = useState<string | null>('demo-lm');
  const [bits, setBits] = useState<Bits>(null);
  const [newTokens, setNewTokens] = useState(24);
  const [by, setBy] = useState<Objective>('total_s');
  const [asked, setAsked] = useState<AdviceQuestion | null>(null);
  const model = catalogue?.models.find((row) => row.name === name);
  const spec = activeSpec(drawing);
  const question: AdviceQuestion | null =
    model && spec && !problems
      ? {
          cluster: spec,
          model: model.name,
          weight_bits: bits,
          by,
          answer: true,
          workload: {
            prompt_tokens: model.reads_text ? Math.min(PROMPT_TOKENS, model.max_positions / 2) : null,
            new_tokens: model.has_head ? newTokens : 0,
          },
        }
      : null;
  const { advice, error, stale } = useAdvice(question);
  // The list above the questions is whole: it moves them no more.
  const isListed = useOnce(problems || name === null || error !== null || advice?.finished === true);
  const isAsked = asked !== null && JSON.stringify(asked) === JSON.stringify(question);
  const changes = useChanges(isAsked ? question : null, by, stale ? undefined : advice);
  return (
    <div className={classes.section} data-testid="advisor">
      <span className="overline">Advisor</span>
      <Select
        size="xs"
        aria-label="Model to advise on"
        searchable
        value={name}
        data={catalogue?.models.map((row) => row.name) ?? []}
        onChange={setName}
        data-testid="advice-model"
      />
      <WeightBits size="xs" bits={bits} onBits={setBits} />
      {(!catalogue || model?.has_head) && (
        <NumberInput
          size="xs"
          label="New tokens"
          min={1}
          max={100_000}
          value={newTokens}
          onChange={(value) => setNewTokens(typeof value === 'number' ? Math.max(1, value) : 1)}
        />
      )}
      <Select
        size="xs"
        aria-label="Ranked by"
        allowDeselect={false}
        value={by}
        data={GOALS.map(({ key, title }) => ({ value: key, label: title }))}
        onChange={(value) => value && setBy(value as Objective)}
        data-testid="advice-by"
      />
      {problems ? (
        <Text size="xs" c="dimmed" data-testid="advice-problems">
          Solve the problems first: nothing can run on this drawing.
        </Text>
      ) : error && !stale ? (
        <Text size="xs" c="dimmed" data-testid="advice-error">
          {sentence(error)}
        </Text>
      ) : (
        advice && (
          <>
            <Verdict advice={advice} model={name} stale={stale} />
            <AdviceList rows={advice.rows} strategies={catalogue?.strategies ?? []} by={by} stale={stale} />
            {advice.simulated_tokens < advice.new_tokens && (
              <Text size="xs" c="dimmed">
                Estimated from {advice.simulated_tokens} of {advice.new_tokens} tokens.
              </Text>
            )}
            {changes.changes || changes.busy || changes.error ? (
              <Changes {...changes} />
            ) : (
              <Button
                size="compact-xs"
                variant="default"
                disabled={stale || !advice.finished}
                onClick={() => setAsked(question)}
                data-testid="advice-try-changes"
              >
                Which change would help most?
              </Button>
            )}
          </>
        )
      )}
      {isListed && (
        <>
          <Text size="xs" fw={600} mt="sm">
            Questions
          </Text>
          <AskAdvisor base={question} />
        </>
      )}
    </div>
  );
}
