import { Button, type ButtonProps } from '@mantine/core';
import { IconUser } from '@tabler/icons-react';

type Props = ButtonProps & React.ComponentPropsWithRef<'button'> & { user: string };

export function UserButton({ user, ...props }: Props) {
  return (
    <Button
      variant="subtle"
      color="gray"
      leftSection={<IconUser size={16} />}
      data-testid="user-menu"
      {...props}
    >
      {user}
    </Button>
  );
}
