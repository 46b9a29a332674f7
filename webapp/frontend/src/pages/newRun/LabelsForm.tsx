import { SimpleGrid, TagsInput, Textarea, TextInput } from '@mantine/core';
import type { Draft } from '@/run/request/draft';

interface Props {
  draft: Draft;
  set: (patch: Partial<Draft>) => void;
  errorOf: (path: string) => string | undefined;
}

/** What a person finds the run by again: its name, tags and notes. */
export function LabelsForm({ draft, set, errorOf }: Props) {
  return (
    <>
      <SimpleGrid cols={2} spacing="md">
        <TextInput
          label="Name"
          placeholder="Optional: to find it again"
          value={draft.name}
          maxLength={100}
          error={errorOf('name')}
          onChange={(event) => set({ name: event.currentTarget.value })}
          data-testid="run-name"
        />
        <TagsInput
          label="Tags"
          placeholder={draft.tags.length === 0 ? 'press Enter after each' : ''}
          value={[...draft.tags]}
          error={errorOf('tags')}
          onChange={(tags) => set({ tags })}
          data-testid="run-tags"
        />
      </SimpleGrid>
      <Textarea
        label="Notes"
        mt="xs"
        autosize
        minRows={1}
        maxRows={8}
        value={draft.notes}
        error={errorOf('notes')}
        onChange={(event) => set({ notes: event.currentTarget.value })}
        data-testid="run-notes"
      />
    </>
  );
}
