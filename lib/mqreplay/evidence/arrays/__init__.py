"""Operations on arrays and frames. They know no rule of RocketMQ."""
