import { Alert, Text } from '@mantine/core';
import { IconInfoCircle } from '@tabler/icons-react';

/** What is missing on this page: stored documents that cannot be read, or a prediction that met a limit. */
export function Unreadable({ problems }: { problems: readonly string[] }) {
  if (problems.length === 0) return null;
  return (
    <Alert color="yellow" variant="light" icon={<IconInfoCircle size={20} />} data-testid="unreadable">
      {problems.map((problem) => (
        <Text size="sm" key={problem}>
          {problem}
        </Text>
      ))}
    </Alert>
  );
}
