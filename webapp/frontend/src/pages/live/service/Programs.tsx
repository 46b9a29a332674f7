import { Button, Code, CopyButton, Group, Text } from '@mantine/core';

/** Where programs that know OpenAI's API send requests, and a line to try it with. */
export function Programs({ name, runId }: { name: string; runId: number }) {
  const address = `${location.origin}/v1`;
  return (
    <Group gap={6} mb={10} data-testid="programs">
      <Text size="xs" c="dimmed">
        OpenAI clients: base URL <Code fz="xs">{address}</Code> · model <Code fz="xs">{name}</Code> or{' '}
        <Code fz="xs">{runId}</Code>
      </Text>
      <CopyButton value={trialLine(address, runId)}>
        {({ copied, copy }) => (
          <Button
            size="compact-xs"
            variant="default"
            title={trialLine(address, runId)}
            data-testid="copy-trial"
            onClick={copy}
          >
            {copied ? 'Copied' : 'Copy a line to try it'}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}

/** A command for a shell; the run's number names it without quotes, and no other run has it. */
export function trialLine(address: string, runId: number): string {
  const body = JSON.stringify({ model: `${runId}`, messages: [{ role: 'user', content: 'Hello' }] });
  return `curl ${address}/chat/completions -H "Authorization: Bearer $LOOM_TOKEN" -d '${body}'`;
}
