import classes from './PictureFrame.module.css';

interface Props {
  /** PNG in base64; nothing yet while it is loading. */
  image: string | undefined;
  /** Pixels of each edge on the page. */
  size: number;
  alt: string;
}

/** A picture that a model sees: square, and with sharp pixels where the model sees only few. */
export function PictureFrame({ image, size, alt }: Props) {
  return (
    <div className={classes.frame} style={{ width: size, height: size }}>
      {image && (
        <img
          src={`data:image/png;base64,${image}`}
          alt={alt}
          width={size}
          height={size}
          data-testid="picture-shown"
        />
      )}
    </div>
  );
}
