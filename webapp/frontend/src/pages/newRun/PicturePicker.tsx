import { Anchor, Button, FileButton, Group, Loader, Text } from '@mantine/core';
import { IconPhotoUp } from '@tabler/icons-react';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { api, sentence } from '@/api/client';
import { useRandomPicture } from '@/api/queries';
import type { ModelRow, Picture } from '@/api/types';
import { PictureFrame } from '@/components/PictureFrame';

const MAX_FILE_BYTES = 10_000_000;

interface Props {
  model: ModelRow;
  /** The picture in the model's size; null: a random one from the seed. */
  image: string | null;
  seed: number;
  error?: string;
  onImage: (image: string | null) => void;
}

/** Chooses the input picture. The server scales it to the size of the chosen model. */
export function PicturePicker({ model, image, seed, error, onImage }: Props) {
  const [file, setFile] = useState<File | null>(null);
  const tooLarge = file !== null && file.size > MAX_FILE_BYTES;
  const prepared = useQuery({
    queryKey: ['prepared', model.name, file?.name, file?.size, file?.lastModified],
    queryFn: ({ signal }) => {
      const form = new FormData();
      form.append('file', file!);
      return api.upload<Picture>(`/models/${model.name}/picture`, form, signal);
    },
    enabled: file !== null && !tooLarge,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    retry: false,
  });
  const made = prepared.isPlaceholderData ? undefined : prepared.data?.image;
  useEffect(() => {
    if (file && made && made !== image) onImage(made);
  }, [file, made, image, onImage]);
  const random = useRandomPicture(model.name, seed, image === null);
  const shown = image ?? random.data?.image;
  const refusal = tooLarge
    ? `${file.name} is larger than 10 MB.`
    : prepared.error
      ? sentence(prepared.error)
      : error;
  const forget = () => {
    setFile(null);
    onImage(null);
  };
  return (
    <Group align="flex-start" gap="md" mb="md" wrap="nowrap" data-testid="picture">
      <PictureFrame
        image={shown}
        size={112}
        alt={image ? 'The picture as the model sees it' : 'A random picture'}
      />
      <div>
        <Text size="sm" fw={500}>
          Picture
        </Text>
        <Text size="xs" c="dimmed" mb={8}>
          {image
            ? (file?.name ?? 'From the earlier run')
            : `Random, from seed ${seed}${model.reads_text ? '' : '; each request has its own'}`}
          {' · '}
          {model.image_rows} rows{model.reads_text ? ' of the prompt' : ''}
        </Text>
        <Group gap="sm">
          <FileButton accept="image/png,image/jpeg" onChange={setFile}>
            {(props) => (
              <Button
                {...props}
                size="xs"
                variant="default"
                leftSection={<IconPhotoUp size={15} />}
                data-testid="choose-picture"
              >
                Choose a file
              </Button>
            )}
          </FileButton>
          {image && (
            <Anchor component="button" type="button" size="xs" onClick={forget} data-testid="random-picture">
              Random again
            </Anchor>
          )}
          {prepared.isFetching && <Loader size="xs" />}
        </Group>
        {refusal && (
          <Text size="xs" c="red" mt={6} role="alert" data-testid="picture-error">
            {refusal}
          </Text>
        )}
      </div>
    </Group>
  );
}
