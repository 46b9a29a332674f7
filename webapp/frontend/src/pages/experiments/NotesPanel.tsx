import { Alert, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Note } from '@/experiment/data/answers';

interface Props {
  notes: readonly Note[];
  /** They are of an earlier design. */
  stale?: boolean;
  /** What can be done about it. */
  children?: ReactNode;
}

/** What a reader must know before comparing: methods that come to one plan, changes that change nothing. */
export function NotesPanel({ notes, stale = false, children }: Props) {
  if (notes.length === 0) return null;
  const isSevere = notes.some(({ kind }) => kind !== 'same');
  return (
    <Alert color={isSevere ? 'yellow' : 'gray'} p="sm" opacity={stale ? 0.5 : 1} data-testid="same-plans">
      {notes.map(({ sentence }) => (
        <Text key={sentence} size="sm">
          {sentence}
        </Text>
      ))}
      {children}
    </Alert>
  );
}
