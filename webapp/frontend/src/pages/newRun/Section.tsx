import { Card, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import classes from './newRun.module.css';

/** One section of the form, with the server's message about it. */
export function Section({
  title,
  about,
  error,
  children,
}: {
  title: string;
  about?: ReactNode;
  error?: string;
  children: ReactNode;
}) {
  return (
    <Card component="section" padding="md" aria-label={title}>
      <div className={classes.head}>
        <h2>{title}</h2>
        {about && (
          <Text size="sm" c="dimmed">
            {about}
          </Text>
        )}
      </div>
      {children}
      {error && (
        <Text size="sm" c="red" mt="xs" role="alert" data-testid={`error-${title.toLowerCase()}`}>
          {error}
        </Text>
      )}
    </Card>
  );
}
