import { Button, Group, Modal, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';

interface Question {
  title: string;
  text: string;
  /** The label of the confirming button. */
  action: string;
  onConfirm: () => void;
}

/** A dialog before an action that cannot be undone: render the first element, call the second with the question. */
export function useConfirm(): [ReactNode, (question: Question) => void] {
  const [question, setQuestion] = useState<Question | null>(null);
  const close = () => setQuestion(null);
  const dialog = (
    <Modal opened={question !== null} onClose={close} title={question?.title} centered size="sm">
      <Text size="sm">{question?.text}</Text>
      <Group justify="flex-end" mt="lg">
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
        <Button
          color="red"
          data-testid="confirm"
          onClick={() => {
            question?.onConfirm();
            close();
          }}
        >
          {question?.action}
        </Button>
      </Group>
    </Modal>
  );
  return [dialog, setQuestion];
}
