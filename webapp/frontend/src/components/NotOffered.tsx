import { Text } from '@mantine/core';

/** Below a list to choose from: what cannot be chosen, and why, a sentence each. */
export function NotOffered({ sentences }: { sentences: readonly string[] }) {
  return sentences.map((sentence) => (
    <Text key={sentence} size="xs" c="dimmed" mt={6} data-testid="not-offered">
      {sentence}
    </Text>
  ));
}
