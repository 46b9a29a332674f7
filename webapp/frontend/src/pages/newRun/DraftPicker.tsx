import { Group, NumberInput, Select } from '@mantine/core';
import type { ModelRow } from '@/api/types';
import { type Draft, drafts, draftsFor } from '@/run/request/draft';

interface Props {
  models: readonly ModelRow[];
  model: ModelRow | undefined;
  draft: Draft;
  error: string | undefined;
  onDraft: (change: Partial<Pick<Draft, 'draft_model' | 'likely_acceptance'>>) => void;
}

/** Chooses a second model, which drafts tokens in strategies that draft, and how often a guess is right; nothing
 *  where none has its tokens and its own layers do not draft. */
export function DraftPicker({ models, model, draft, error, onDraft }: Props) {
  const able = draftsFor(models, model);
  if (able.length === 0 && !drafts(draft)) return null;
  return (
    <Group align="flex-start" mt="xs">
      <Select
        flex={1}
        miw={180}
        label="Draft model"
        description="A smaller model of the same tokens, which guesses them in strategies that draft."
        placeholder="none"
        clearable
        searchable
        value={draft.draft_model}
        error={error}
        data={able.map(({ name, title }) => ({ value: name, label: `${name} — ${title}` }))}
        onChange={(name) => onDraft({ draft_model: name })}
        data-testid="draft-model"
      />
      {drafts(draft) && (
        <NumberInput
          w={260}
          label="Likely acceptance"
          description="The share of tokens that what drafts guesses, for predictions; reports measure it."
          min={0}
          max={1}
          step={0.05}
          decimalScale={3}
          value={draft.likely_acceptance}
          onChange={(value) => typeof value === 'number' && onDraft({ likely_acceptance: value })}
          data-testid="likely-acceptance"
        />
      )}
    </Group>
  );
}
