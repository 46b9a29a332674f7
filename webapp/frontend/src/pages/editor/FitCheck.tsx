import { Progress, Select, Text, Tooltip } from '@mantine/core';
import { useAdvice } from '@/advice/useAdvice';
import { useCatalogue } from '@/api/queries';
import { activeSpec } from '@/cluster/drawing';
import type { Validation } from '@/api/types';
import { bytes } from '@/format/units';
import { type Bits, WeightBits } from '@/run/request/WeightBits';
import classes from './editor.module.css';
import { useDrawing } from './editorStore';
import type { FitQuestion } from './useValidation';

interface Props {
  question: FitQuestion;
  onQuestion: (question: FitQuestion) => void;
  validation: Validation | undefined;
}

/** Whether a model fits on this cluster; checked with every validation. */
export function FitCheck({ question, onQuestion, validation }: Props) {
  const { data } = useCatalogue();
  // The answer about another model, or other bits, is none about this one.
  const answered = validation?.fits;
  const isThis =
    answered?.model === question.model && (answered?.weight_bits ?? null) === question.weight_bits;
  const fits = isThis ? answered : undefined;
  const cannot = useReasonsAgainst(question.model, question.weight_bits);
  return (
    <div className={classes.section}>
      <span className="overline">Does a model fit?</span>
      <Select
        size="xs"
        placeholder="Choose a model"
        clearable
        searchable
        value={question.model}
        data-testid="fit-model"
        data={data?.models.map((model) => model.name) ?? []}
        onChange={(model) => onQuestion({ ...question, model })}
      />
      {question.model && (
        <WeightBits
          size="xs"
          bits={question.weight_bits}
          onBits={(weight_bits) => onQuestion({ ...question, weight_bits })}
        />
      )}
      <Select
        size="xs"
        placeholder="Any strategy"
        clearable
        value={question.strategy}
        disabled={!question.model}
        data-testid="fit-strategy"
        data={
          data?.strategies.map(({ name, title }) => ({
            value: name,
            label: title,
            disabled: cannot.has(name),
          })) ?? []
        }
        renderOption={({ option }) => (
          <span title={cannot.get(option.value)} data-testid={`fit-${option.value}`}>
            {option.label}
            {cannot.has(option.value) && <small> · cannot run it here</small>}
          </span>
        )}
        onChange={(strategy) => onQuestion({ ...question, strategy })}
      />
      {question.model && fits?.sentence && (
        <Text size="xs" c={fits.fits === false ? 'var(--loom-bad)' : undefined} data-testid="fit-sentence">
          {fits.sentence}
        </Text>
      )}
      {question.model &&
        Object.entries(fits?.devices ?? {}).map(([name, fit]) => (
          <Tooltip key={name} label={`${bytes(fit.need_bytes)} of weights in ${bytes(fit.memory_bytes)}`}>
            <div>
              <Text size="xs" style={{ display: 'flex', justifyContent: 'space-between' }}>
                <span>{name}</span>
                <Text span inherit c="dimmed">
                  {bytes(fit.need_bytes)}
                </Text>
              </Text>
              <Progress
                size="sm"
                value={Math.min(100, (100 * fit.need_bytes) / fit.memory_bytes)}
                color={fit.fits ? 'teal' : 'red'}
                aria-label={`Memory of ${name}`}
              />
            </div>
          </Tooltip>
        ))}
    </div>
  );
}

/** Strategy → why it has no plan for this model on the cluster that takes part in runs. */
function useReasonsAgainst(name: string | null, weight_bits: Bits): ReadonlyMap<string, string> {
  const spec = activeSpec(useDrawing());
  const model = useCatalogue().data?.models.find((row) => row.name === name);
  const workload = {
    prompt_tokens: model?.reads_text ? 16 : null,
    new_tokens: model?.has_head ? 16 : 0,
  };
  const { advice, stale } = useAdvice(
    spec && model ? { cluster: spec, model: model.name, weight_bits, workload } : null,
  );
  const rows = (stale || !advice?.finished ? undefined : advice.rows) ?? [];
  return new Map(rows.filter((row) => row.total_s === null).map((row) => [row.strategy, row.reason]));
}
