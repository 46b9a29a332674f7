import { Alert, Button, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';

interface Props {
  title?: string;
  message: string;
  onRetry?: () => void;
}

/** One sentence about what went wrong, with a retry button if `onRetry` is given. */
export function ErrorPanel({ title, message, onRetry }: Props) {
  return (
    <Alert
      color="red"
      variant="light"
      title={title}
      icon={<IconAlertTriangle size={18} />}
      data-testid="error"
      role="alert"
    >
      <Text size="sm">{message}</Text>
      {onRetry && (
        <Button mt="sm" size="xs" variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}
